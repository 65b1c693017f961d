// SPDX-License-Identifier: MIT
//
// VfAssignmentPolicy: which driver gets the function of a VF, and whether the end of a claim
// scrubs its VRAM. Part of VfSpec. Only data, which GpuModel applies. Whatever the policy, VRAM
// that a VF loses is scrubbed and verified.
#pragma once

#include "daemon/ports/assignment_port.h"
#include "daemon/service/input/value_kind.h"

#include <array>
#include <string_view>

namespace vgpu::daemon {

struct VfAssignmentPolicy {
    AssignmentMode assignment_mode = AssignmentMode::Default;
    /// True if every end of a claim scrubs the VF, also if another owner takes over after the lease
    /// is over. If false, only a release with AfterRelease::Scrub or OwnerStopped scrubs the VF.
    bool scrubs_on_release = false;

    bool operator==(const VfAssignmentPolicy&) const = default;
};

inline constexpr std::array kAssignmentModes{
#define ASSIGNMENT_MODE(name, word, meaning) Word{word, AssignmentMode::name},
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
};

}  // namespace vgpu::daemon
