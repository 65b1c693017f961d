// SPDX-License-Identifier: MIT
//
// What vgpud remembers across its own death: the VFs an operator defined (name, UUID, resources,
// policy, owner), the GPU's time-slicing options, which scrubs are known to be complete, and the
// apply that is under way. This is the defined state; what is (the active state) is the PF core's
// word and never written here. Plain values; StateStore writes them, GpuModel compares them with
// what the PF core says.
#pragma once

#include "daemon/service/scheduler/planner.h"
#include "daemon/service/state/lease_clock.h"
#include "daemon/service/vf/custody.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/ownership.h"
#include "daemon/service/vf/qos.h"
#include "daemon/service/vf/shape.h"
#include "daemon/service/words.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// One VF as it is defined. What is 0 or empty stands for a default, so that a record says only
/// what somebody asked for.
struct VfRecord {
    std::uint32_t vf = 0;
    std::string name;
    Uuid uuid{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;  ///< 0: the GPU's
    VfQos qos{};
    VfCustody custody{};
    std::uint64_t vram_bytes = 0;
    std::uint64_t cu_mask = 0;         ///< 0: all
    std::uint32_t doorbell_pages = 0;  ///< 0: all
    bool is_releasing = false;         ///< to be destroyed; scrub not yet recorded
    std::string profile{};             ///< it was made from; empty: from none
    VfSecurity security{};
    std::optional<VfNext> next{};  ///< it is being given another shape
    OwnerRecord owner{};

    bool operator==(const VfRecord&) const = default;
};

/// What plans compare of it: all but its number, its owner and what is under way.
[[nodiscard]] inline VfDefinition definition_of(const VfRecord& record) {
    return {.name = record.name,
            .uuid = record.uuid,
            .shape = shape_of(record),
            .weight = record.weight,
            .quantum_us = record.quantum_us,
            .qos = record.qos,
            .custody = record.custody,
            .profile = record.profile};
}

/// Zeroes from a PF core that does not keep UUIDs.
[[nodiscard]] inline Uuid uuid_of(const vgpu_pf_vf& live) {
    Uuid uuid{};
    std::copy(std::begin(live.uuid), std::end(live.uuid), uuid.begin());
    return uuid;
}
/// What is in service is the VF with this UUID, as far as the PF core tells.
[[nodiscard]] inline bool is_vf(const vgpu_pf_vf& live, const Uuid& uuid) {
    return uuid_of(live) == uuid || uuid_of(live) == Uuid{};
}

struct GpuRecord {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
    std::map<std::uint32_t, VfRecord> vfs{};          ///< by VF number
    std::map<std::uint32_t, std::uint32_t> scrubs{};  ///< VF number: last generation scrubbed
    std::uint64_t claims = 0;                         ///< generation of the last claim of any VF

    bool operator==(const GpuRecord&) const = default;
};

/// What a GPU's record says of all its VFs.
struct GpuPolicy {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
};
[[nodiscard]] inline GpuPolicy policy_of(const GpuRecord& record) {
    return {.quantum_us = record.quantum_us, .max_gap_ms = record.max_gap_ms};
}

/// What the file of one GPU says.
struct GpuFile {
    std::string gpu;               ///< id
    std::uint64_t generation = 0;  ///< counts the changes of this file
    GpuRecord record{};
    std::optional<LeaseTime> lease_time{};  ///< when it was written; nothing: there was no clock

    bool operator==(const GpuFile&) const = default;
};

}  // namespace vgpu::daemon
