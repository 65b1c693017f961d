// SPDX-License-Identifier: MIT
#include "daemon/service/vf/resources.h"

#include "daemon/service/state/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

Json security_json(const VfSecurity& security) {
    return {{"preempt_timeout_us", security.preempt_timeout_us},
            {"full_access_timeout_ms", security.full_access_timeout_ms},
            {"guard_limits", security.guard_limits},
            {"exclusive_full_access", security.is_exclusive_full_access}};
}

VfSecurity security_of(const Json& json) {
    VfSecurity security;
    json.at("preempt_timeout_us").get_to(security.preempt_timeout_us);
    json.at("full_access_timeout_ms").get_to(security.full_access_timeout_ms);
    json.at("guard_limits").get_to(security.guard_limits);
    json.at("exclusive_full_access").get_to(security.is_exclusive_full_access);
    return security;
}

Json next_json(const VfNext& next) {
    Json json = {{"replaces", next.replaces},
                 {"vram_bytes", next.resources.vram_bytes},
                 {"cu_mask", next.resources.cu_mask},
                 {"doorbell_pages", next.resources.doorbell_pages},
                 {"security", security_json(next.resources.security)}};
    if (next.needs_scrub) json["needs_scrub"] = true;
    return json;
}

VfNext next_of(const Json& json) {
    VfNext next;
    json.at("replaces").get_to(next.replaces);
    json.at("vram_bytes").get_to(next.resources.vram_bytes);
    json.at("cu_mask").get_to(next.resources.cu_mask);
    json.at("doorbell_pages").get_to(next.resources.doorbell_pages);
    next.resources.security = security_of(json.at("security"));
    next.needs_scrub = json.value("needs_scrub", false);
    return next;
}

}  // namespace

VfResources resources_of(const VfRecord& record) {
    return {.vram_bytes = record.vram_bytes,
            .cu_mask = record.cu_mask,
            .doorbell_pages = record.doorbell_pages,
            .security = record.security};
}

void set_resources(VfRecord& record, const VfResources& resources) {
    record.vram_bytes = resources.vram_bytes;
    record.cu_mask = resources.cu_mask;
    record.doorbell_pages = resources.doorbell_pages;
    record.security = resources.security;
}

vgpu_pf_provision provision_of(const VfResources& resources) {
    vgpu_pf_provision request{};
    request.vram_bytes = resources.vram_bytes;
    request.cu_mask = resources.cu_mask;
    request.doorbell_pages = resources.doorbell_pages;
    request.preempt_timeout_us = resources.security.preempt_timeout_us;
    request.full_access_timeout_ms = resources.security.full_access_timeout_ms;
    std::copy(resources.security.guard_limits.begin(), resources.security.guard_limits.end(),
              std::begin(request.guard_limits));
    if (resources.security.is_exclusive_full_access)
        request.flags |= VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS;
    return request;
}

void add_rare_members(const VfRecord& record, nlohmann::json& json) {
    if (!record.profile.empty()) json["profile"] = record.profile;
    if (record.security != VfSecurity{}) json["security"] = security_json(record.security);
    if (record.next) json["next"] = next_json(*record.next);
    if (record.assignment_policy != VfAssignmentPolicy{})
        json["assignment_policy"] = Json(assignment_policy_json(record.assignment_policy));
    if (record.qos != VfQos{}) json["qos"] = Json(qos_json(record.qos));
}

void read_rare_members(const nlohmann::json& json, VfRecord& record) {
    record.profile = json.value("profile", "");
    if (json.contains("security")) record.security = security_of(json.at("security"));
    if (json.contains("next")) record.next = next_of(json.at("next"));
    if (json.contains("assignment_policy"))
        record.assignment_policy = assignment_policy_of(json.at("assignment_policy"));
    if (json.contains("qos")) record.qos = qos_of(json.at("qos"));
}

}  // namespace vgpu::daemon
