// SPDX-License-Identifier: MIT
#include "daemon/service/vf/settings.h"

#include "daemon/service/input/value_io.h"

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace vgpu::daemon {

namespace {

/// A row of schemas/vf_settings.def.
struct Row {
    std::string_view key;
    std::string_view member;  ///< path in VfSpec: "weight", "qos.min_pct"
    Section section;
    Change change;

    /// Name of the object in a state file that has the setting: "qos" for "qos.min_pct"; empty for
    /// a member of VfSpec itself.
    [[nodiscard]] std::string group() const {
        return std::string(member == key ? "" : member.substr(0, member.find('.')));
    }
};

/// Calls visit(row, kind, members...) for each row. `kind`: the kind of the values (value_kind.h);
/// `members`: the setting's member in each of `specs`.
template <typename Visit, typename... Specs>
void for_each_setting(const Visit& visit, Specs&... specs) {
#define VF_SETTING(key, member, section, kind, property, help) \
    visit(Row{#key, #member, Section::section, Change::property}, kind, specs.member...);
#include "schemas/vf_settings.def"
}

}  // namespace

void apply(const VfChange& change, VfSpec& spec) {
    for_each_setting(
        [&change](const Row& row, const auto&, const auto& from, auto& to) {
            if (change.given.contains(row.key)) to = from;
        },
        change.to, spec);
    if (change.given.contains("name")) spec.name = change.to.name;
    if (change.given.contains("profile")) spec.profile = change.to.profile;
}

VfChange settings_of(const VfSpec& spec) {
    VfChange change{.to = spec, .given = {"profile"}};
    for_each_setting([&change](const Row& row, const auto&) { change.given.insert(row.key); });
    return change;
}

std::vector<ChangedValue> differences(const VfSpec& from, const VfSpec& to) {
    std::vector<ChangedValue> changed;
    const VfResources &before = from.resources, &after = to.resources;
    if (before.vram_bytes != after.vram_bytes) changed.push_back({Change::VramBytes});
    if (before.cu_mask != after.cu_mask) changed.push_back({Change::CuMask});
    if (before.doorbell_pages != after.doorbell_pages) changed.push_back({Change::DoorbellPages});
    if (before.security != after.security) changed.push_back({Change::GuestLimits});
    for_each_setting(
        [&changed]<typename Value>(const Row& row, const auto&, const Value& old_one,
                                   const Value& new_one) {
            if (old_one == new_one) return;
            changed.push_back({row.change});
            if constexpr (std::is_integral_v<Value>) changed.back().value = new_one;
        },
        from, to);
    return changed;
}

std::vector<ChangedValue> differences(const GpuSettings& from, const GpuSettings& to) {
    std::vector<ChangedValue> changed;
    if (from.quantum_us != to.quantum_us) changed.push_back({Change::QuantumUs, to.quantum_us});
    if (from.max_gap_ms != to.max_gap_ms) changed.push_back({Change::MaxGapMs, to.max_gap_ms});
    return changed;
}

Need need_of(const Abilities& abilities, const std::vector<ChangedValue>& changed) {
    Need worst;
    for (const ChangedValue& one : changed)
        if (const Needs needs = abilities[one.change].needs;
            needs > worst.needs && needs <= Needs::AllIdle)
            worst = {needs, one.change};
    return worst;
}

std::vector<std::string_view> setting_keys(std::optional<Section> section) {
    std::vector<std::string_view> keys;
    for_each_setting([&](const Row& row, const auto&) {
        if (row.section == section.value_or(row.section)) keys.push_back(row.key);
    });
    return keys;
}

Result<VfChange> read_settings(const OptionReader& options) {
    VfChange change;
    Result<> read_all;
    for_each_setting(
        [&](const Row& row, const auto& kind, auto& to) {
            const std::string key(row.key);
            if (read_all) read_all = read_value(options, key, kind, to);
            if (options.has(key)) change.given.insert(row.key);
        },
        change.to);
    TRY_VOID(read_all);
    return change;
}

void read_settings(JsonSection& json, Section section, VfSpec& to) {
    for_each_setting(
        [&](const Row& row, const auto& kind, auto& member) {
            if (row.section == section) read_value(json, std::string(row.key), kind, member);
        },
        to);
}

nlohmann::ordered_json settings_json(const VfSpec& spec, Detail which) {
    const VfSpec defaults;
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for_each_setting(
        [&](const Row& row, const auto& kind, const auto& value, const auto& default_value) {
            if (which == Detail::All || value != default_value)
                json[std::string(row.key)] = json_form_of(kind, value);
        },
        spec, defaults);
    return json;
}

void add_settings(const VfSpec& spec, Section section, nlohmann::ordered_json& to) {
    const auto special = settings_json(spec, Detail::Special);
    for (const std::string_view key : setting_keys(section))
        if (const auto at = special.find(std::string(key)); at != special.end()) to[at.key()] = *at;
}

void add_settings(const VfSpec& spec, nlohmann::json& to) {
    const VfSpec defaults;
    for_each_setting(
        [&]<typename Kind>(const Row& row, const Kind& kind, const auto& value,
                           const auto& default_value) {
            if (value == default_value && !std::is_same_v<Kind, Whole>) return;
            const std::string group = row.group();
            (group.empty() ? to : to[group])[std::string(row.key)] = json_form_of(kind, value);
        },
        spec, defaults);
}

void read_settings(const nlohmann::json& json, VfSpec& to) {
    for_each_setting(
        [&json](const Row& row, const auto& kind, auto& member) {
            const std::string group = row.group();
            if (group.empty() || json.contains(group))
                read_value(group.empty() ? json : json.at(group), std::string(row.key), kind,
                           member);
        },
        to);
}

}  // namespace vgpu::daemon
