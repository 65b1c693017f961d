// SPDX-License-Identifier: MIT
//
// VfAssignmentPolicy: the assignment of a VF: which driver gets its function, and whether the end
// of a claim empties its VRAM. Part of VfRecord, profiles and plans. A change disturbs no running
// work. Plain values, which GpuModel applies. VRAM that leaves a VF is always scrubbed and
// verified.
#pragma once

#include "daemon/ports/assignment_port.h"
#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// When a VF is emptied between two owners.
enum class ScrubPolicy {
    Request,  ///< when the release requests it
    Release,  ///< at the end of every claim, including claims with an expired lease
};

struct VfAssignmentPolicy {
    AssignmentMode assignment_mode = AssignmentMode::Default;
    ScrubPolicy scrub = ScrubPolicy::Request;

    bool operator==(const VfAssignmentPolicy&) const = default;
};

/// Values that are not given stay.
struct AssignmentPolicyChange {
    std::optional<AssignmentMode> assignment_mode{};
    std::optional<ScrubPolicy> scrub{};
};

void apply(const AssignmentPolicyChange& change, VfAssignmentPolicy& assignment_policy);
/// The change that makes any assignment policy equal to `assignment policy`.
[[nodiscard]] AssignmentPolicyChange change_to(const VfAssignmentPolicy& assignment_policy);

[[nodiscard]] std::string_view name_of(ScrubPolicy scrub);

[[nodiscard]] std::vector<std::string_view> assignment_policy_names();
/// Reads the options of assignment policy. WrongType or OutOfRange with the option.
[[nodiscard]] Result<AssignmentPolicyChange> read_assignment_policy(const OptionReader& options);
/// Read members of a profile and of its "security". If a member is absent, the value stays.
void read_assignment_mode(JsonSection& section, VfAssignmentPolicy& assignment_policy);
void read_scrub(JsonSection& section, VfAssignmentPolicy& assignment_policy);

/// assignment_policy_json() writes members that differ from the default. assignment_policy_of()
/// throws as nlohmann::json does.
[[nodiscard]] nlohmann::ordered_json assignment_policy_json(
    const VfAssignmentPolicy& assignment_policy);
[[nodiscard]] nlohmann::ordered_json whole_assignment_policy_json(
    const VfAssignmentPolicy& assignment_policy);
[[nodiscard]] VfAssignmentPolicy assignment_policy_of(const nlohmann::json& json);

}  // namespace vgpu::daemon
