// SPDX-License-Identifier: MIT
//
// Capacity: how many VFs of each profile a scheduler of many hosts may hand out on this host.
// Counts from the last snapshots and the records; makes no claim. Runs in the main loop only.
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
    std::string profile;            ///< empty: VFs without a profile
    std::uint32_t total = 0;        ///< defined
    std::uint32_t free = 0;         ///< may be claimed now, or after the scrub that is under way
    std::uint32_t claimed = 0;      ///< have an owner, and the lease lasts or a client has the VF
                                    ///< open; of a GPU that is not attached: have an owner
    std::uint32_t unavailable = 0;  ///< neither free nor claimed: GPU lost, VF not in service,
                                    ///< VF without owner but open

    bool operator==(const CapacityRow&) const = default;
};

/// By GPU, then by profile. Includes VFs of GPUs that are not in service.
[[nodiscard]] std::vector<CapacityRow> capacity_of(const Manager& manager);

/// Counts changes of capacity_of(), so that a client can wait for the next change.
class CapacityCounter {
public:
    /// Returns the current rows. Adds 1 to count() if they differ from the rows of the last call.
    const std::vector<CapacityRow>& update(const Manager& manager);
    /// 1 after the first update().
    [[nodiscard]] std::uint64_t count() const { return count_; }

private:
    std::vector<CapacityRow> rows_;
    std::uint64_t count_ = 0;
};

}  // namespace vgpu::daemon
