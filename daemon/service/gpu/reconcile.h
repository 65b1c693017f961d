// SPDX-License-Identifier: MIT
//
// Reconcile: what is to be done with a VF, from what is on record (with the change of resources
// that is pending, VfRecord::next) and what is active in the PF core. Pure; GpuModel does it.
// docs/decisions/0028-one-table-reconciles.md draws the table.
#pragma once

#include "daemon/service/state/records.h"

#include <cstddef>

namespace vgpu::daemon {

/// What the record says about the VF in service, or about its number if no VF is in service.
enum class OnRecord {
    Nothing,
    Defined,
    Change,     ///< a change of resources is pending, for which the VF was not released yet
    Scrub,      ///< the same, and the VF must be emptied
    Changed,    ///< a change is pending, and the VF was released and made again
    Other,      ///< another VF is defined under this number
    Releasing,  ///< the VF is to be destroyed
};
inline constexpr std::size_t kOnRecords = 7;

enum class Active { Absent, InService, Scrubbing };
inline constexpr std::size_t kActives = 3;

enum class VfAction {
    Keep,       ///< it is as defined
    Forget,     ///< its number is free
    Restore,    ///< make it as defined
    Resize,     ///< make it with the resources of the change, or else with the old ones
    Record,     ///< record it as found
    Leave,      ///< another program made it: touch neither it nor the record
    Release,    ///< release it
    Empty,      ///< release it once its client is gone; then it is made again
    EndChange,  ///< record which of its two sets of resources it has
    Await,      ///< once the scrub is over and durable, it is Absent
};

[[nodiscard]] VfAction action_for(OnRecord on_record, Active active);
/// `record`: of the VF's number; null: none.
[[nodiscard]] VfAction action_for(const VfRecord* record, const VfFacts& active);

}  // namespace vgpu::daemon
