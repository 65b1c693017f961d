// SPDX-License-Identifier: MIT
//
// Settings: the properties of a VfSpec that may change while the VF works. Each setting has a row
// in schemas/vf_settings.def; the functions of this file handle all rows alike. The functions that
// read options and profiles check each value by itself; admission checks all settings together.
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

/// The part of a profile that contains a setting: the profile itself, or its member "scheduler" or
/// "security".
enum class Section { Profile, Scheduler, Security };

/// A change of a VF: the members of `to` whose keys are in `given`. A key is "name", "profile" or
/// the key of a setting.
struct VfChange {
    VfSpec to{};
    std::set<std::string_view> given{};  ///< the keys; views of string literals
};

/// Copies the changed members to `spec`.
void apply(const VfChange& change, VfSpec& spec);
/// A change that gives a VF the profile and all settings of `spec`.
[[nodiscard]] VfChange settings_of(const VfSpec& spec);

/// A kind of change. `value`: the new value of a setting that is a whole number or a flag (0 or 1);
/// none for other settings and for resources.
struct ChangedValue {
    Change change{};
    std::optional<std::uint64_t> value{};
};
/// One entry for each setting or resource in which `to` differs from `from`; one entry for all of
/// VfResources::security.
[[nodiscard]] std::vector<ChangedValue> differences(const VfSpec& from, const VfSpec& to);
[[nodiscard]] std::vector<ChangedValue> differences(const GpuSettings& from, const GpuSettings& to);

/// The strictest condition of several changes, and a change with this condition.
struct Need {
    Needs needs = Needs::Nothing;
    Change change{};
};
/// The Need of `changed`. Ignores changes that vgpud cannot make; check_offered() refuses those.
[[nodiscard]] Need need_of(const Abilities& abilities, const std::vector<ChangedValue>& changed);

/// The keys of one section, or of all settings.
[[nodiscard]] std::vector<std::string_view> setting_keys(std::optional<Section> section = {});

/// Reads the settings among the options. Fails with WrongType or OutOfRange; the error names the
/// option.
[[nodiscard]] Result<VfChange> read_settings(const OptionReader& options);
/// Reads the settings of `section` from `json`. A setting that `json` does not have stays as it is.
void read_settings(JsonSection& json, Section section, VfSpec& to);

enum class Detail {
    All,      ///< all settings
    Special,  ///< settings that differ from the default
};
/// Settings by key, without sections.
[[nodiscard]] nlohmann::ordered_json settings_json(const VfSpec& spec, Detail which);
/// Adds to `to`, the JSON of `section`, the settings of this section that differ from the default.
void add_settings(const VfSpec& spec, Section section, nlohmann::ordered_json& to);

/// Writes the settings in the form of state files: the members of VfQos are in an object "qos",
/// those of VfAssignmentPolicy in an object "assignment_policy". Writes all whole numbers, and
/// other settings only if they differ from the default.
void add_settings(const VfSpec& spec, nlohmann::json& to);
/// Reads the form of state files. Whole numbers must be present; another setting that `json` does
/// not have stays as it is. Throws nlohmann::json::exception or std::runtime_error if `json` does
/// not have that form.
void read_settings(const nlohmann::json& json, VfSpec& to);

}  // namespace vgpu::daemon
