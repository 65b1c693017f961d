// SPDX-License-Identifier: MIT
//
// VfSpec: all that defines a VF. The same struct is in records, profiles, plans and requests, so
// that they are copied and compared as a whole. The number, the owner and what is under way are not
// part of it: VfRecord, InventoryVf and DesiredVf add them.
#pragma once

#include "daemon/service/scheduler/planner.h"
#include "daemon/service/vf/assignment_policy.h"
#include "daemon/service/vf/qos.h"
#include "daemon/service/vf/resources.h"
#include "daemon/service/words.h"

#include <cstdint>
#include <string>

namespace vgpu::daemon {

inline constexpr Line kDescription = line(256);

/// A profile has no name, UUID and profile. Values of 0 and empty ones stand for a default.
struct VfSpec {
    std::string name{};
    Uuid uuid{};
    VfResources resources{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;  ///< 0: the GPU's
    VfQos qos{};
    VfAssignmentPolicy assignment_policy{};
    std::string profile{};      ///< it was made from; empty: from none
    std::string description{};  ///< free text of one line

    bool operator==(const VfSpec&) const = default;
};

}  // namespace vgpu::daemon
