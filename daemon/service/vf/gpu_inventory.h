// SPDX-License-Identifier: MIT
//
// GpuInventory: what there is of one GPU and what is in use, as plans need it. Made by
// GpuModel::inventory(), fresh from the PF core; changed by nobody but the planner's own model.
// Shapes are normalised: a mask of all compute units and all doorbell pages are 0.
#pragma once

#include "daemon/service/scheduler/planner.h"
#include "daemon/service/vf/custody.h"
#include "daemon/service/vf/ownership.h"
#include "daemon/service/vf/qos.h"
#include "daemon/service/vf/shape.h"
#include "daemon/service/words.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// What is to be known of a VF to keep it, change it, make it anew.
/// What a plan compares and changes; owner and state are not part of it.
struct VfDefinition {
    std::string name;
    Uuid uuid{};
    VfShape shape{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;  ///< 0: the GPU's
    VfQos qos{};
    VfCustody custody{};
    std::string profile{};

    bool operator==(const VfDefinition&) const = default;
};

struct InventoryVf {
    std::uint32_t vf = 0;
    VfDefinition definition{};
    bool is_attached = false;
    OwnerRecord owner{};
    bool is_lease_over = false;  ///< of `owner`, who has no say any more
    std::string trouble{};       ///< why it is not in service as it is defined; empty: it is

    bool operator==(const InventoryVf&) const = default;
};

struct GpuSettings {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;

    bool operator==(const GpuSettings&) const = default;
};

/// What a plan changes in its own copy (change_plan.h, perform()); VRAM in bytes.
struct GpuInventory {
    std::string id;
    std::uint64_t vram_bytes = 0;     ///< of all VFs together, in use or not
    std::uint64_t pf_vram_bytes = 0;  ///< besides, of the PF; no VF can have it
    std::uint64_t vram_unit_bytes = 1;
    std::uint64_t vram_most_bytes = 0;  ///< of one VF: its BAR0
    std::uint32_t total_vfs = 0;
    std::uint32_t doorbell_pages = 0;  ///< of one VF
    std::uint32_t cu_count = 0;
    GpuSettings settings{};
    std::vector<InventoryVf> vfs{};  ///< by number; none that is being released
    bool is_scrubbing = false;       ///< resources counted here are still being scrubbed

    bool operator==(const GpuInventory&) const = default;
};

}  // namespace vgpu::daemon
