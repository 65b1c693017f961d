// SPDX-License-Identifier: MIT
//
// Capacity: how many VFs of each profile a scheduler of many hosts, such as Slurm, may hand out on
// this host. Computed from the latest snapshots and the records. Runs in the main loop only.
#pragma once

#include "daemon/service/manager.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// The VFs of one profile on one GPU: total = free + claimed + unavailable.
struct CapacityRow {
    std::string gpu;
    GpuState gpu_state = GpuState::Starting;
    std::string profile;      ///< empty: VFs without a profile
    std::uint32_t total = 0;  ///< VFs that are defined
    std::uint32_t free = 0;   ///< VFs that may be claimed, now or after a running scrub
    /// VFs with an owner. If the GPU's snapshot shows that the lease is over and that no client has
    /// the VF open, the VF counts as free or unavailable instead.
    std::uint32_t claimed = 0;
    std::uint32_t unavailable = 0;  ///< all others, such as VFs of a lost GPU, stopped VFs, and VFs
                                    ///< without an owner that a client has open

    bool operator==(const CapacityRow&) const = default;
};

/// One row for each GPU and profile, sorted by GPU, then by profile. While a GPU is not in service,
/// also counts the VFs that are on record but not in its snapshot: a VF with an owner as claimed,
/// any other VF as unavailable.
[[nodiscard]] std::vector<CapacityRow> capacity_of(const Manager& manager);

/// Counts changes of capacity_of(), so that a client can wait for the next change.
class CapacityCounter {
public:
    /// Returns the current rows. Adds 1 to count() if the rows differ from those of the last call.
    const std::vector<CapacityRow>& update(const Manager& manager);
    /// 0 before the first update(), then 1 or more.
    [[nodiscard]] std::uint64_t count() const { return count_; }

private:
    std::vector<CapacityRow> rows_;
    std::uint64_t count_ = 0;
};

}  // namespace vgpu::daemon
