// SPDX-License-Identifier: MIT
//
// The state that vgpud keeps on disk: the VFs that an operator defined (name, UUID, resources,
// policy, owner), the GPU's time-slicing options, the scrubs known to be complete, and the apply
// that is under way. This is the defined state. The active state comes from the PF core and is
// never recorded. Plain values: StateStore writes them, and GpuModel compares them with the PF
// core.
#pragma once

#include "daemon/service/scheduler/planner.h"
#include "daemon/service/state/lease_clock.h"
#include "daemon/service/vf/assignment_policy.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/ownership.h"
#include "daemon/service/vf/qos.h"
#include "daemon/service/vf/resources.h"
#include "daemon/service/words.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// The definition of one VF. A value of 0 or an empty value stands for a default, so that a record
/// contains only what was requested.
struct VfRecord {
    std::uint32_t vf = 0;
    std::string name;
    Uuid uuid{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;  ///< 0: the GPU's
    VfQos qos{};
    VfAssignmentPolicy assignment_policy{};
    std::uint64_t vram_bytes = 0;
    std::uint64_t cu_mask = 0;         ///< 0: all
    std::uint32_t doorbell_pages = 0;  ///< 0: all
    bool is_releasing = false;         ///< to be destroyed; scrub not yet recorded
    std::string profile{};             ///< the VF was made from; empty: none
    VfSecurity security{};
    std::optional<VfNext> next{};  ///< set while a resize or an owed scrub is under way
    OwnerRecord owner{};

    bool operator==(const VfRecord&) const = default;
};

/// The part of a record that plans compare: all but number, owner and operations under way.
[[nodiscard]] inline VfDefinition definition_of(const VfRecord& record) {
    return {.name = record.name,
            .uuid = record.uuid,
            .resources = resources_of(record),
            .weight = record.weight,
            .quantum_us = record.quantum_us,
            .qos = record.qos,
            .assignment_policy = record.assignment_policy,
            .profile = record.profile};
}

/// The UUID in the PF core; all zeroes if the PF core does not keep UUIDs.
[[nodiscard]] inline Uuid uuid_of(const vgpu_pf_vf& active) {
    Uuid uuid{};
    std::copy(std::begin(active.uuid), std::end(active.uuid), uuid.begin());
    return uuid;
}
/// Whether the VF in service has this UUID, or the PF core does not report UUIDs.
[[nodiscard]] inline bool is_vf(const vgpu_pf_vf& active, const Uuid& uuid) {
    return uuid_of(active) == uuid || uuid_of(active) == Uuid{};
}

struct GpuRecord {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
    std::map<std::uint32_t, VfRecord> vfs{};          ///< by VF number
    std::map<std::uint32_t, std::uint32_t> scrubs{};  ///< VF number: last generation scrubbed
    std::uint64_t claims = 0;                         ///< generation of the last claim of any VF

    bool operator==(const GpuRecord&) const = default;
};

/// The settings of a GPU that apply to all its VFs.
struct GpuPolicy {
    std::uint32_t quantum_us = scheduler::kDefaultQuantumUs;
    std::uint32_t max_gap_ms = scheduler::kDefaultMaxGapMs;
};
[[nodiscard]] inline GpuPolicy policy_of(const GpuRecord& record) {
    return {.quantum_us = record.quantum_us, .max_gap_ms = record.max_gap_ms};
}

/// Content of the state file of one GPU.
struct GpuFile {
    std::string gpu;               ///< id
    std::uint64_t generation = 0;  ///< counts the changes of this file
    GpuRecord record{};
    std::optional<LeaseTime> lease_time{};  ///< time of the write; none without a clock

    bool operator==(const GpuFile&) const = default;
};

}  // namespace vgpu::daemon
