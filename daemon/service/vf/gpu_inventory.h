// SPDX-License-Identifier: MIT
//
// GpuInventory: the resources and VFs of one GPU, made by GpuModel::inventory(). Plans start from
// it. The resources of the VFs are normalised: a cu_mask of 0 stands for all compute units, and
// doorbell_pages of 0 for all doorbell pages.
#pragma once

#include "daemon/backend/abilities.h"
#include "daemon/service/vf/ownership.h"
#include "daemon/service/vf/spec.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// A defined VF, and the facts that decide whether a plan may change it.
struct InventoryVf {
    std::uint32_t vf = 0;
    VfSpec spec{};
    bool is_attached = false;    ///< true if a client or a driver has the VF open
    OwnerRecord owner{};         ///< the claim in force; an empty name: none
    bool is_lease_over = false;  ///< true if the lease of `owner` is over
    /// True if `owner` is a domain that runs, or may be about to start. Determined only if the
    /// driver requires idle VFs to change the number of VFs (Change::Vfs); otherwise false.
    bool has_running_domain = false;
    std::string condition{};  ///< why the VF is not in service as defined; empty if it is

    bool operator==(const InventoryVf&) const = default;
};

/// The scheduling parameters of a GPU, for VFs that do not set their own.
struct GpuSettings {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;  ///< longest slice
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;   ///< longest wait for the engine

    bool operator==(const GpuSettings&) const = default;
};

/// A change of GpuSettings. An absent value stays as it is.
struct GpuChange {
    std::optional<std::uint32_t> quantum_us{};
    std::optional<std::uint32_t> max_gap_ms{};

    bool operator==(const GpuChange&) const = default;
};
inline void apply(const GpuChange& change, GpuSettings& settings) {
    settings.quantum_us = change.quantum_us.value_or(settings.quantum_us);
    settings.max_gap_ms = change.max_gap_ms.value_or(settings.max_gap_ms);
}

/// A change that sets all values.
inline GpuChange change_to(const GpuSettings& settings) {
    return {.quantum_us = settings.quantum_us, .max_gap_ms = settings.max_gap_ms};
}

/// A step of a plan that changes the number of enabled VFs (GpuModel::enable_vfs()).
struct VfCount {
    std::uint32_t from = 0, to = 0;  ///< number of enabled VFs before and after the step
    /// By VF number: VRAM of the VFs that the plan creates next. Some drivers must know these sizes
    /// when they enable the VFs.
    std::map<std::uint32_t, std::uint64_t> vram_bytes{};

    bool operator==(const VfCount&) const = default;
};

/// make_change_plan() applies each step of a plan to a copy of the inventory (perform() in
/// change_plan.h).
struct GpuInventory {
    std::string id;
    std::uint64_t vram_bytes = 0;     ///< VRAM for all VFs, used or not
    std::uint64_t pf_vram_bytes = 0;  ///< VRAM that the PF keeps, in addition
    Abilities abilities{};            ///< limits of one VF, and the condition of each change
    std::uint32_t total_vfs = 0;      ///< number of VFs that the device can have
    std::uint32_t enabled_vfs = 0;    ///< number of VFs that exist now
    /// As GpuFacts::other_users: the VFs in use that do not belong to vgpud, for messages.
    std::vector<std::string> other_users{};
    GpuSettings settings{};
    std::vector<InventoryVf> vfs{};  ///< by number, without VFs that are being destroyed
    /// Numbers that no VF on record has, but that are in use: the function is open, or another
    /// program has made a VF with this number.
    std::set<std::uint32_t> used_numbers{};
    bool is_scrubbing = false;  ///< true while the PF core scrubs any VF of the GPU

    bool operator==(const GpuInventory&) const = default;
};

}  // namespace vgpu::daemon
