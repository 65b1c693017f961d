// SPDX-License-Identifier: MIT
//
// GpuInventory: resources and VFs of one GPU, as plans need them. GpuModel::inventory() makes it.
// The resources are normalised: 0 stands for the mask of all compute units, and for the number of
// all doorbell pages.
#pragma once

#include "daemon/backend/abilities.h"
#include "daemon/service/vf/ownership.h"
#include "daemon/service/vf/spec.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

struct InventoryVf {
    std::uint32_t vf = 0;
    VfSpec spec{};
    bool is_attached = false;
    OwnerRecord owner{};
    bool is_lease_over = false;  ///< true if the lease of `owner` is over
    /// True if `owner` is a domain that runs, or may be about to start.
    bool has_running_domain = false;
    std::string condition{};  ///< why the VF is not in service as defined; empty if it is

    bool operator==(const InventoryVf&) const = default;
};

struct GpuSettings {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;

    bool operator==(const GpuSettings&) const = default;
};

/// A change of GpuSettings. Values that are not given stay.
struct GpuChange {
    std::optional<std::uint32_t> quantum_us{};
    std::optional<std::uint32_t> max_gap_ms{};

    bool operator==(const GpuChange&) const = default;
};
inline void apply(const GpuChange& change, GpuSettings& settings) {
    settings.quantum_us = change.quantum_us.value_or(settings.quantum_us);
    settings.max_gap_ms = change.max_gap_ms.value_or(settings.max_gap_ms);
}

/// A change that gives every value.
inline GpuChange change_to(const GpuSettings& settings) {
    return {.quantum_us = settings.quantum_us, .max_gap_ms = settings.max_gap_ms};
}

/// The number of enabled VFs before and after a step.
struct VfCount {
    std::uint32_t from = 0, to = 0;
    /// VRAM of the VFs that the plan makes next, by VF number. Some drivers must know these sizes
    /// when they enable the VFs.
    std::map<std::uint32_t, std::uint64_t> vram_bytes{};

    bool operator==(const VfCount&) const = default;
};

/// The planner works on a copy, which each step changes (perform() in change_plan.h).
struct GpuInventory {
    std::string id;
    std::uint64_t vram_bytes = 0;     ///< VRAM for all VFs, used or not
    std::uint64_t pf_vram_bytes = 0;  ///< VRAM that the PF keeps, in addition
    Abilities abilities{};            ///< limits of one VF, and what each change needs
    std::uint32_t total_vfs = 0;      ///< VFs the device can have
    std::uint32_t enabled_vfs = 0;    ///< VFs that exist now
    /// The VFs in use that vgpud did not create, for messages: "vf3 (0000:03:00.3) is open through
    /// vfio-pci".
    std::vector<std::string> other_users{};
    GpuSettings settings{};
    std::vector<InventoryVf> vfs{};  ///< by number, without VFs being released
    bool is_scrubbing = false;       ///< true while the PF core scrubs any VF of the GPU

    bool operator==(const GpuInventory&) const = default;
};

}  // namespace vgpu::daemon
