// SPDX-License-Identifier: MIT
//
// Product: a simulation of the shipped parts instead of a Policy: vgpud's GpuModel makes run tables
// from contracts and events, the PF core executes them and keeps the contracts, a ModelGpu is the
// device. All of it runs in virtual time; vgpud answers events after plan_delay_ns.
//
//   arrivals, changes --> ModelGpu <--> PF core <-- run tables -- GpuModel
//                                          +------- events ------^
//
// VFs are created, loaded by a guest's driver, changed and destroyed as an operator would. The PF
// core resets VFs that hang or overrun for longer than their time-out, and they load again. At time
// 0 the slots of gangs with phase 0 begin. Figures and the reports to a Witness mean the same as
// those of Simulator, with three exceptions: slots without work count as idle, the time of a hang
// counts as service by weight for the witness alone, and gangs do not compete.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// VFs that one run table can hold.
inline constexpr std::size_t kProductVfs = 16;

/// From an event to the take-over of the table that answers it: the p99 of a wake-up of a thread of
/// the normal class under load, which is worse than vgpud's (docs/scheduling.md).
inline constexpr std::int64_t kMeasuredPlanDelayNs = 1'200'000;

struct VgpudModel {
    std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to its answer
    /// From then on vgpud neither reads nor writes anything, as if stopped, or dead and not
    /// restarted.
    std::int64_t stops_at_ns = INT64_MAX;
    std::int64_t continues_at_ns = INT64_MAX;
};

/// OutOfRange with more than kProductVfs VFs, or gangs whose slots never begin together; a refusal
/// of vgpud is passed on with its text.
daemon::Result<Figures> run_product(const Simulation& setup, Witness* witness = nullptr,
                                    const VgpudModel& vgpud = {});

}  // namespace vgpu::simulator
