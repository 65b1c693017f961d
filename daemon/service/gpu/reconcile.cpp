// SPDX-License-Identifier: MIT
#include "daemon/service/gpu/reconcile.h"

#include <array>

namespace vgpu::daemon {

namespace {

using enum VfAction;

constexpr std::array<std::array<VfAction, kActives>, kOnRecords> kTable{{
    //                Absent   InService  Scrubbing
    /* Nothing   */ {{Forget, Record, Await}},
    /* Defined   */ {{Restore, Keep, Await}},
    /* Change    */ {{Resize, EndChange, Await}},
    /* Scrub     */ {{Resize, Recreate, Await}},
    /* Changed   */ {{Resize, EndChange, Await}},
    /* Other     */ {{Restore, Leave, Await}},
    /* Releasing */ {{Forget, Release, Await}},
}};

OnRecord on_record(const VfRecord* record, const VfFacts& active) {
    if (record == nullptr) return OnRecord::Nothing;
    if (!is_vf(active, record->spec.uuid)) return OnRecord::Other;
    if (record->is_releasing) return OnRecord::Releasing;
    if (!record->next) return OnRecord::Defined;
    if (active.generation != record->next->replaces) return OnRecord::Changed;
    return record->next->needs_scrub ? OnRecord::Scrub : OnRecord::Change;
}

Active active_of(const VfFacts& active) {
    if (active.state == VGPU_PF_VF_ABSENT) return Active::Absent;
    return active.state == VGPU_PF_VF_SCRUBBING ? Active::Scrubbing : Active::InService;
}

}  // namespace

VfAction action_for(OnRecord on_record, Active active) {
    return kTable.at(static_cast<std::size_t>(on_record)).at(static_cast<std::size_t>(active));
}

VfAction action_for(const VfRecord* record, const VfFacts& active) {
    return action_for(on_record(record, active), active_of(active));
}

}  // namespace vgpu::daemon
