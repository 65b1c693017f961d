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

inline constexpr std::array kAssignmentModes{
#define ASSIGNMENT_MODE(name, word, meaning) Word{word, AssignmentMode::name},
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
};
inline constexpr std::array kScrubs{Word{"request", ScrubPolicy::Request},
                                    Word{"release", ScrubPolicy::Release}};

[[nodiscard]] constexpr std::string_view name_of(ScrubPolicy scrub) {
    return name_among(kScrubs, scrub);
}

}  // namespace vgpu::daemon
