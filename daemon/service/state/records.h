// SPDX-License-Identifier: MIT
//
// The records that vgpud keeps on disk, one for each GPU: the VFs that an operator defined (name,
// UUID, resources, settings, owner), the GPU's scheduling settings, and the last scrub of each VF
// number. This is the defined state. The active state comes from the PF core and is never recorded.
// Only data: StateStore writes the records, and GpuModel compares them with the PF core.
#pragma once

#include "daemon/backend/facts.h"
#include "daemon/service/state/lease_clock.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// A resize or a required scrub that is under way: vgpud releases the VF, and after its scrub
/// provisions the VF with `resources`. vgpud writes the VfNext to disk before it releases the VF,
/// so that a later vgpud can continue. vgpud erases the VfNext when the VF has resources again, or
/// when the PF core has refused `resources`.
struct VfNext {
    VfResources resources;
    std::uint32_t replaces = 0;  ///< generation of the VF that must be released
    bool needs_scrub = false;  ///< true: scrub the VF even if its resources stay the same, because
                               ///< its claim has ended or its owner has stopped

    bool operator==(const VfNext&) const = default;
};

/// The definition of one VF, its claim, and the operation under way on it.
struct VfRecord {
    std::uint32_t vf = 0;
    VfSpec spec{};
    bool is_releasing = false;     ///< true: being destroyed, and its scrub is not yet on record
    std::optional<VfNext> next{};  ///< set while a resize or a required scrub is under way
    OwnerRecord owner{};           ///< the claim in force, if any

    bool operator==(const VfRecord&) const = default;
};

/// True if the VF that the driver reports has this UUID, or if the driver keeps no UUIDs.
[[nodiscard]] inline bool is_vf(const VfFacts& active, const Uuid& uuid) {
    return active.uuid.value_or(uuid) == uuid;
}

/// The record of one GPU.
struct GpuRecord {
    GpuSettings settings{};
    std::map<std::uint32_t, VfRecord> vfs{};          ///< by VF number
    std::map<std::uint32_t, std::uint32_t> scrubs{};  ///< by VF number: generation last scrubbed
    std::uint64_t claims = 0;  ///< largest generation of a claim so far; 0: no claim yet

    bool operator==(const GpuRecord&) const = default;
};

/// Content of the state file of one GPU.
struct GpuFile {
    std::string gpu;               ///< id of the GPU
    std::uint64_t generation = 0;  ///< number of changes of this file
    GpuRecord record{};
    std::optional<LeaseTime> lease_time{};  ///< lease clock at the write; none without a clock

    bool operator==(const GpuFile&) const = default;
};

}  // namespace vgpu::daemon
