// SPDX-License-Identifier: MIT
//
// Settings: the properties of a VfSpec that may change while the VF works. Each has a row in
// schemas/vf_settings.def, and these functions read and write all rows alike. The functions check
// single values; admission checks all settings together.
#pragma once

#include "daemon/backend/abilities.h"
#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/spec.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Where a profile has a setting: in the profile itself or in one of its members.
enum class Section { Profile, Scheduler, Security };

/// A change of a VF: the members of `to` whose keys are in `given`. The keys are those of settings,
/// "name" and "profile".
struct VfChange {
    VfSpec to{};
    std::set<std::string_view> given{};  ///< views of literals
};

void apply(const VfChange& change, VfSpec& spec);
/// The change that gives a VF all settings and the profile of `spec`.
[[nodiscard]] VfChange settings_of(const VfSpec& spec);

/// A kind of change. `value`: the new value of a setting that is a whole number; else none.
struct ChangedValue {
    Change change{};
    std::optional<std::uint64_t> value{};
};
/// The settings and resources in which `to` differs from `from`.
[[nodiscard]] std::vector<ChangedValue> differences(const VfSpec& from, const VfSpec& to);
[[nodiscard]] std::vector<ChangedValue> differences(const GpuSettings& from, const GpuSettings& to);

/// The strictest condition of several changes, and the change with this condition.
struct Need {
    Needs needs = Needs::Nothing;
    Change change{};
};
/// Ignores changes that vgpud cannot make (check_offered() refuses them).
[[nodiscard]] Need need_of(const Abilities& abilities, const std::vector<ChangedValue>& changed);

/// The keys of one section, or of all settings.
[[nodiscard]] std::vector<std::string_view> setting_keys(std::optional<Section> section = {});

/// Reads the settings among the options. Fails with WrongType or OutOfRange and the option.
[[nodiscard]] Result<VfChange> read_settings(const OptionReader& options);
/// Reads the settings of `section`. If a member is absent, the value stays.
void read_settings(JsonSection& json, Section section, VfSpec& to);

enum class Detail {
    All,
    Special,  ///< settings that differ from the default
};
[[nodiscard]] nlohmann::ordered_json settings_json(const VfSpec& spec, Detail which);
/// Adds the settings of `section` that differ from the default to `to`, the JSON of that section.
void add_settings(const VfSpec& spec, Section section, nlohmann::ordered_json& to);

/// Writes the settings in the form of state files: members of VfQos and of VfAssignmentPolicy are
/// in objects. Writes all whole numbers, and other settings only if they differ from the default.
void add_settings(const VfSpec& spec, nlohmann::json& to);
/// Reads the form of state files. Throws nlohmann::json::exception or std::runtime_error if `json`
/// does not have that form.
void read_settings(const nlohmann::json& json, VfSpec& to);

}  // namespace vgpu::daemon
