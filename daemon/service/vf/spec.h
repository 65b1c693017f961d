// SPDX-License-Identifier: MIT
//
// VfSpec: the definition of a VF. Records, profiles, plans and requests contain this struct, so
// that a definition is copied and compared as a whole. VfRecord, InventoryVf and DesiredVf consist
// of a VfSpec and further facts, such as the VF's number and owner.
#pragma once

#include "daemon/service/scheduler/planner.h"
#include "daemon/service/vf/assignment_policy.h"
#include "daemon/service/vf/qos.h"
#include "daemon/service/vf/resources.h"
#include "daemon/service/words.h"

#include <cstdint>
#include <string>

namespace vgpu::daemon {

/// The valid values of VfSpec::description: one line of at most 256 bytes.
inline constexpr Line kDescription = line(256);

/// In a profile, `name`, `uuid` and `profile` are empty. In a CreateRequest, an empty `name` or
/// `uuid` stands for a value that GpuModel::create() chooses.
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
