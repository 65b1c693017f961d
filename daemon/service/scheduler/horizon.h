// SPDX-License-Identifier: MIT
//
// Horizon planner: the scheduler's next decisions as a run table. A copy of the Scheduler is run
// ahead as if everybody who has work kept it and every slice ended on time; what it decides are the
// entries, until the horizon is reached and every VF with work has had a turn. VFs without work
// follow, so that the table holds every VF even if nobody ever plans again; those with a
// reservation are in the reserve, from which the PF core lets them pre-empt when they wake.
//
// A table is exact until something happens that it did not foresee; then a VF is served by a stale
// table for at most the time from that event to the take-over of the next one, and what it gets
// meanwhile is accounted as any service is. docs/scheduling.md has the bound. Caps cannot be said
// in a table: a VF that is held back is left out, and the owner has to pause it.
// Pure; called by whoever owns the Scheduler.
#pragma once

#include "daemon/service/scheduler/scheduler.h"

#include <cstdint>
#include <vector>

namespace vgpu::daemon::scheduler {

/// Times in ns; min_slice_ns and max_slice_ns are what the uapi takes.
struct HorizonLimits {
    std::int64_t horizon_ns = 60'000'000;  ///< plan this far, switches included
    std::int64_t switch_ns = 100'000;
    std::uint32_t max_entries = 1024;
    std::int64_t min_slice_ns = 100'000;  ///< shorter ones are given with the VF's next turn
    std::int64_t max_slice_ns = 1'000'000'000;
};

/// A whole number of us, in ns.
struct HorizonEntry {
    std::uint32_t vf = 0;
    std::int64_t slice_ns = 0;
    ServiceClass service = ServiceClass::Proportional;

    bool operator==(const HorizonEntry&) const = default;
};

struct HorizonPlan {
    std::vector<HorizonEntry> entries;
    std::vector<HorizonEntry> reserve;  ///< shortest period first
    std::int64_t length_ns = 0;         ///< of the part that was run ahead
};

/// Whole microseconds only. Empty if there is no VF.
/// `scheduler` is a copy on purpose: its decisions are only rehearsed.
HorizonPlan plan_ahead(Scheduler scheduler, std::int64_t at_ns, const HorizonLimits& limits);

}  // namespace vgpu::daemon::scheduler
