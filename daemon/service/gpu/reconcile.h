// SPDX-License-Identifier: MIT
//
// Chooses the action that makes a VF of the PF core match its record. The input is the record, with
// its pending change of resources (VfRecord::next), and the state in the PF core. Pure; GpuModel
// carries out the action. docs/decisions/0028-one-table-reconciles.md shows the table.
#pragma once

#include "daemon/service/state/records.h"

#include <cstddef>

namespace vgpu::daemon {

/// The rows of the table: what the record says about a VF number and the VF that has this number in
/// the PF core. "Pending" means that VfRecord::next is set.
enum class OnRecord {
    Nothing,    ///< no VF is defined under this number
    Defined,    ///< the VF is defined, and no change of resources is pending
    Change,     ///< a change is pending, and the VF still has generation VfNext::replaces
    Scrub,      ///< as Change, and the change requires a scrub (VfNext::needs_scrub)
    Changed,    ///< a change is pending, and the VF no longer has generation VfNext::replaces
    Other,      ///< the VF in the PF core has another UUID than the VF on record; the rest of the
                ///< record does not matter
    Releasing,  ///< the VF is being destroyed
};
/// Number of values of OnRecord.
inline constexpr std::size_t kOnRecords = 7;

/// The columns of the table: the state of the VF in the PF core. InService: any state except ABSENT
/// and SCRUBBING.
enum class Active { Absent, InService, Scrubbing };
/// Number of values of Active.
inline constexpr std::size_t kActives = 3;

enum class VfAction {
    Keep,      ///< do nothing: the VF is as defined
    Forget,    ///< erase the record, if any: the number is free
    Restore,   ///< provision the VF as defined
    Resize,    ///< provision the VF with VfNext::resources or, after a refusal, as defined
    Record,    ///< make a record of the unknown VF
    Leave,     ///< change neither VF nor record: another program made the VF
    Release,   ///< release the VF
    Recreate,  ///< release the VF when its client is gone, or after GpuModel::kDetachTimeout; after
               ///< the scrub, provision the VF again
    EndChange,  ///< record the resources that the VF has, old or new, and erase VfRecord::next
    Await,      ///< do nothing: the VF becomes ABSENT when the end of its scrub is on record
};

[[nodiscard]] VfAction action_for(OnRecord on_record, Active active);
/// As above, for `record`, the record under the VF's number; null: no record.
[[nodiscard]] VfAction action_for(const VfRecord* record, const VfFacts& active);

}  // namespace vgpu::daemon
