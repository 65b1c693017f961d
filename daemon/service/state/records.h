// SPDX-License-Identifier: MIT
//
// The records of GPUs that vgpud keeps on disk: the VFs that an operator defined (name, UUID,
// resources, policy, owner), the GPU's time-slicing options, and the last scrub of each VF number.
// This is the defined state. The active state comes from the PF core and is never recorded. Only
// data: StateStore writes the records, and GpuModel compares them with the PF core.
#pragma once

#include "daemon/backend/facts.h"
#include "daemon/service/state/lease_clock.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// A resize or a required scrub that is under way: the VF gets `resources` once the VRAM of
/// generation `replaces` is scrubbed. vgpud records the VfNext before it releases the VF, and
/// erases the VfNext when the VF has resources again, so that a later vgpud can continue.
struct VfNext {
    VfResources resources;
    std::uint32_t replaces = 0;
    bool needs_scrub = false;  ///< true: scrub the VF even if its resources stay, because its
                               ///< owner left

    bool operator==(const VfNext&) const = default;
};

/// The definition of one VF, its claim, and the operation under way on it.
struct VfRecord {
    std::uint32_t vf = 0;
    VfSpec spec{};
    bool is_releasing = false;     ///< true: the VF is to be destroyed; no scrub recorded yet
    std::optional<VfNext> next{};  ///< set while a resize or a required scrub is under way
    OwnerRecord owner{};

    bool operator==(const VfRecord&) const = default;
};

/// True if the VF that the driver reports has this UUID, or the driver stores no UUIDs.
[[nodiscard]] inline bool is_vf(const VfFacts& active, const Uuid& uuid) {
    return active.uuid.value_or(uuid) == uuid;
}

struct GpuRecord {
    GpuSettings settings{};
    std::map<std::uint32_t, VfRecord> vfs{};          ///< by VF number
    std::map<std::uint32_t, std::uint32_t> scrubs{};  ///< by VF number: last scrubbed generation
    std::uint64_t claims = 0;                         ///< generation of the last claim of any VF

    bool operator==(const GpuRecord&) const = default;
};

/// Content of the state file of one GPU.
struct GpuFile {
    std::string gpu;               ///< id of the GPU
    std::uint64_t generation = 0;  ///< counts the changes of this file
    GpuRecord record{};
    std::optional<LeaseTime> lease_time{};  ///< reading at the write; none without a clock

    bool operator==(const GpuFile&) const = default;
};

}  // namespace vgpu::daemon
