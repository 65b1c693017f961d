// SPDX-License-Identifier: MIT
//
// Settings: the properties of a VfSpec that change while the VF works, one row each in
// schemas/vf_settings.def. They are read and written here, for all rows alike. Checks of single
// values; admission checks the whole.
#pragma once

#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"
#include "daemon/service/vf/spec.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Where a profile has a setting: in the profile itself or in one of its members.
enum class Section { Profile, Scheduler, Security };

/// The members of `to` whose keys are given: settings, "name" and "profile".
struct VfChange {
    VfSpec to{};
    std::set<std::string_view> given{};  ///< views of literals
};

void apply(const VfChange& change, VfSpec& spec);
/// The change that gives a VF all settings and the profile of `spec`.
[[nodiscard]] VfChange settings_of(const VfSpec& spec);

/// Of one section, or of all.
[[nodiscard]] std::vector<std::string_view> setting_keys(std::optional<Section> section = {});

/// The settings among the options. WrongType or OutOfRange with the option.
[[nodiscard]] Result<VfChange> read_settings(const OptionReader& options);
/// Absent members stay.
void read_settings(JsonSection& json, Section section, VfSpec& to);

enum class Detail {
    All,
    Special,  ///< those that differ from the default
};
[[nodiscard]] nlohmann::ordered_json settings_json(const VfSpec& spec, Detail which);
/// Adds special settings to a member of a profile.
void add_settings(const VfSpec& spec, Section section, nlohmann::ordered_json& to);

/// The form of state files, with the members of VfQos and VfAssignmentPolicy in objects. Numbers
/// without a fraction are always there. Reading throws as nlohmann::json does, also for an unknown
/// word.
void add_settings(const VfSpec& spec, nlohmann::json& to);
void read_settings(const nlohmann::json& json, VfSpec& to);

}  // namespace vgpu::daemon
