// SPDX-License-Identifier: MIT
//
// VfSpec: everything that defines a VF. Records, profiles, plans and requests contain this struct,
// so that a VF is copied and compared as a whole. The number, the owner and operations under way
// are not part of it; VfRecord, InventoryVf and DesiredVf add them.
#pragma once

#include "daemon/service/scheduler/planner.h"
#include "daemon/service/vf/assignment_policy.h"
#include "daemon/service/vf/qos.h"
#include "daemon/service/vf/resources.h"
#include "daemon/service/words.h"

#include <cstdint>
#include <string>

namespace vgpu::daemon {

/// The form of VfSpec::description: one line of at most 256 bytes.
inline constexpr Line kDescription = line(256);

/// In a profile, `name`, `uuid` and `profile` are empty. 0 and empty values stand for a default.
struct VfSpec {
    std::string name{};
    Uuid uuid{};
    VfResources resources{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;  ///< 0: the GPU's value
    VfQos qos{};
    VfAssignmentPolicy assignment_policy{};
    std::string profile{};      ///< profile that the VF was made from; empty: none
    std::string description{};  ///< free text of one line

    bool operator==(const VfSpec&) const = default;
};

}  // namespace vgpu::daemon
