// SPDX-License-Identifier: MIT
//
// VfAssignmentPolicy: which driver gets the function of a VF, and whether the end of a claim
// empties its VRAM. Part of VfSpec. Plain values, which GpuModel applies. VRAM that leaves a VF is
// always scrubbed and verified.
#pragma once

#include "daemon/ports/assignment_port.h"
#include "daemon/service/input/value_kind.h"

#include <array>
#include <string_view>

namespace vgpu::daemon {

struct VfAssignmentPolicy {
    AssignmentMode assignment_mode = AssignmentMode::Default;
    /// Empties the VF at the end of every claim, including claims with an expired lease; otherwise
    /// only if the release requests it.
    bool scrubs_on_release = false;

    bool operator==(const VfAssignmentPolicy&) const = default;
};

inline constexpr std::array kAssignmentModes{
#define ASSIGNMENT_MODE(name, word, meaning) Word{word, AssignmentMode::name},
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
};

}  // namespace vgpu::daemon
