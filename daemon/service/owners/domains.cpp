// SPDX-License-Identifier: MIT
#include "daemon/service/owners/domains.h"

#include "text/json_document.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

static_assert(Domains::kMax < Assignments::kMaxDomainNames);

namespace {

using Json = nlohmann::json;

std::string text_in(const Json& json, const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

bool flag_in(const Json& json, const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_boolean() && at->get<bool>();
}

}  // namespace

void Domains::take(std::string_view line) {
    const Json json = text::read_json(line).value_or(Json());
    if (!json.is_object()) return;
    if (const auto all = json.find("domains"); all != json.end() && all->is_array()) {
        domains_.clear();
        is_known_ = true;
        for (const Json& one : *all)
            if (one.is_object())
                record(text_in(one, "uuid"),
                       {.name = text_in(one, "name"), .is_active = flag_in(one, "active")});
    }
    if (const auto one = json.find("domain"); one != json.end() && one->is_object())
        record(text_in(*one, "uuid"),
               {.name = text_in(*one, "name"), .is_active = flag_in(*one, "active")});
    domains_.erase(text_in(json, "removed"));
    if (json.contains("lost")) forget();
    assignments_.on_domains_changed();
}

void Domains::record(const std::string& uuid, Domain domain) {
    if (!parse_uuid(uuid)) return;
    if (domains_.size() >= kMax && !domains_.contains(uuid)) return;
    assignments_.set_domain_name("libvirt:" + uuid, domain.name);
    domains_[uuid] = std::move(domain);
}

void Domains::forget() {
    domains_.clear();
    is_known_ = false;
}

std::string Domains::describe(const std::string& owner) const {
    const OwnerForm form = form_of(owner);
    const auto* consumer = std::get_if<DomainOwner>(&form);
    if (consumer == nullptr || !is_known_) return "";
    const auto at = domains_.find(consumer->uuid);
    if (at == domains_.end()) return domains_.size() < kMax ? "libvirt has no such domain" : "";
    if (at->second.is_active) return "";
    return fmt::format("domain '{}' is shut off",
                       assignments_.domain_name_of("libvirt:" + at->first));
}

}  // namespace vgpu::daemon
