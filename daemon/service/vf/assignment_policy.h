// SPDX-License-Identifier: MIT
//
// VfAssignmentPolicy: which driver gets the function of a VF, and whether the end of a claim scrubs
// the VF. Part of VfSpec. Only data; GpuModel applies the policy. With every policy, VRAM that a
// VF gives up is scrubbed before another VF gets it.
#pragma once

#include "daemon/ports/assignment_port.h"
#include "daemon/service/input/value_kind.h"

#include <array>
#include <string_view>

namespace vgpu::daemon {

struct VfAssignmentPolicy {
    AssignmentMode assignment_mode = AssignmentMode::Default;
    /// True: every end of a claim scrubs the VF, even if the claim ends because another owner
    /// claims the VF after the lease. False: only a release with AfterRelease::Scrub or
    /// AfterRelease::OwnerStopped (gpu/gpu.h) scrubs the VF.
    bool scrubs_on_release = false;

    bool operator==(const VfAssignmentPolicy&) const = default;
};

/// All assignment modes and their words in documents, options and D-Bus.
inline constexpr std::array kAssignmentModes{
#define ASSIGNMENT_MODE(name, word, meaning) Word{word, AssignmentMode::name},
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
};

}  // namespace vgpu::daemon
