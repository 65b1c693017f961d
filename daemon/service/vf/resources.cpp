// SPDX-License-Identifier: MIT
#include "daemon/service/vf/resources.h"

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

}  // namespace

VfResources resources_of(const VfFacts& active, const VfResources& fallback) {
    return {.vram_bytes = active.vram_bytes.value_or(fallback.vram_bytes),
            .cu_mask = active.cu_mask.value_or(fallback.cu_mask),
            .doorbell_pages = active.doorbell_pages.value_or(fallback.doorbell_pages)};
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

/// Omits `security` if all its members have their defaults.
nlohmann::json resources_json(const VfResources& resources) {
    Json json = {{"vram_bytes", resources.vram_bytes},
                 {"cu_mask", resources.cu_mask},
                 {"doorbell_pages", resources.doorbell_pages}};
    if (resources.security != VfSecurity{}) json["security"] = security_json(resources.security);
    return json;
}

VfResources resources_of(const nlohmann::json& json) {
    VfResources resources;
    json.at("vram_bytes").get_to(resources.vram_bytes);
    json.at("cu_mask").get_to(resources.cu_mask);
    json.at("doorbell_pages").get_to(resources.doorbell_pages);
    if (json.contains("security")) resources.security = security_of(json.at("security"));
    return resources;
}

}  // namespace vgpu::daemon
