// SPDX-License-Identifier: MIT
//
// Product: simulates the shipped parts instead of a Policy. vgpud's GpuModel makes run tables from
// contracts and events, the PF core executes them, and a ModelGpu is the device. All run in virtual
// time; vgpud answers events after plan_delay_ns.
//
//   arrivals, changes --> ModelGpu <--> PF core <-- run tables -- GpuModel
//                                          +------- events ------^
//
// VFs are created, loaded, changed and destroyed as by an operator. The PF core resets VFs that
// hang or exceed their preempt timeout; their drivers then load again. Gang slots of phase 0 begin
// at time 0. Figures and calls of the Observer differ from those of Simulator: slots without work
// count as idle, a hang counts as service by weight only for the Observer, and the Observer never
// sees a gang compete.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

inline constexpr std::size_t kProductVfs = 16;

/// Time from an event to its table: p99 of a thread's wake-up under load (docs/scheduling.md).
inline constexpr std::int64_t kMeasuredPlanDelayNs = 1'200'000;

struct VgpudModel {
    std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to its answer
    /// From this time until continues_at_ns vgpud does nothing, as if it were stopped or dead.
    std::int64_t stops_at_ns = INT64_MAX;
    std::int64_t continues_at_ns = INT64_MAX;
};

/// OutOfRange for more than kProductVfs VFs, for a simulation without an end, or if gang slots
/// never begin together. Errors of vgpud are passed on.
daemon::Result<Figures> run_product(const Simulation& setup, Observer* observer = nullptr,
                                    const VgpudModel& vgpud = {});

}  // namespace vgpu::simulator
