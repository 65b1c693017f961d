// SPDX-License-Identifier: MIT
//
// Reconcile: chooses the action for a VF from its record (with its pending change of resources,
// VfRecord::next) and its state in the PF core. Pure; GpuModel carries the action out.
// docs/decisions/0028-one-table-reconciles.md draws the table.
#pragma once

#include "daemon/service/state/records.h"

#include <cstddef>

namespace vgpu::daemon {

/// What the record says about a VF number and about the VF in service under this number, if any.
enum class OnRecord {
    Nothing,    ///< no VF is defined under this number
    Defined,    ///< the VF is defined, and no change is pending
    Change,     ///< a change of resources is pending, for which the VF was not released yet
    Scrub,      ///< as Change, and the VF must be scrubbed
    Changed,    ///< a change is pending, and the VF was released and recreated
    Other,      ///< another VF is defined under this number
    Releasing,  ///< the VF is to be destroyed
};
inline constexpr std::size_t kOnRecords = 7;

enum class Active { Absent, InService, Scrubbing };
inline constexpr std::size_t kActives = 3;

enum class VfAction {
    Keep,       ///< do nothing: the VF is as defined
    Forget,     ///< remove the record, if any: the number is free
    Restore,    ///< make the VF as defined
    Resize,     ///< make the VF with the resources of the change, or else with the old resources
    Record,     ///< record the VF as found
    Leave,      ///< change neither VF nor record: another program made the VF
    Release,    ///< release the VF
    Recreate,   ///< release the VF once its client is gone; then create it again
    EndChange,  ///< record the resources that the VF has, old or new
    Await,      ///< do nothing: the VF becomes Absent when the end of its scrub is durable
};

[[nodiscard]] VfAction action_for(OnRecord on_record, Active active);
/// `record`: the record under the VF's number; null: none.
[[nodiscard]] VfAction action_for(const VfRecord* record, const VfFacts& active);

}  // namespace vgpu::daemon
