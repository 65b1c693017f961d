// SPDX-License-Identifier: MIT
//
// Product: a simulation under what is shipped, not under a Policy: vgpud's GpuModel makes run
// tables from contracts and events, the PF core carries them out and keeps the contracts, a
// ModelGpu is the device. All of it in virtual time; vgpud answers to events after plan_delay_ns.
//
//   arrivals, changes --> ModelGpu <--> PF core <-- run tables -- GpuModel
//                                          +------- events ------^
//
// VFs are created, loaded by a guest's driver, changed and destroyed as an operator would; those
// that hang, or overrun for longer than their time-out, are reset by the PF core, and load again.
// Time 0 is one at which slots of gangs with phase 0 begin. Figures and what a Witness is told mean
// the same as those of Simulator, except that slots without work count as idle, that what a VF hung
// counts as its service by weight for the witness alone, and that gangs do not compete.
#pragma once

#include "daemon/ports/result.h"
#include "simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// VFs that one run table can hold.
inline constexpr std::size_t kProductVfs = 16;

/// From an event to the take-over of the table that answers it: the p99 of a wake-up of a thread of
/// the normal class under load, which is worse than vgpud's (docs/scheduling.md).
inline constexpr std::int64_t kMeasuredPlanDelayNs = 1'200'000;

struct VgpudModel {
    std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to its answer
    /// It hears and says nothing then, as one that is stopped, or dead and not started again.
    std::int64_t stops_at_ns = INT64_MAX;
    std::int64_t continues_at_ns = INT64_MAX;
};

/// OutOfRange with more than kProductVfs VFs, or gangs whose slots never begin together; what vgpud
/// refuses is refused with its words.
daemon::Result<Figures> run_product(const Simulation& setup, Witness* witness = nullptr,
                                    const VgpudModel& vgpud = {});

}  // namespace vgpu::simulator
