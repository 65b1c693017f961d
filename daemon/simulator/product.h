// SPDX-License-Identifier: MIT
//
// Product: simulates the shipped parts instead of a Policy. vgpud's GpuModel makes run tables from
// contracts and events, the PF core executes them, and a ModelGpu is the device. All run in virtual
// time; vgpud answers events after plan_delay_ns.
//
//   arrivals, changes --> ModelGpu <--> PF core <-- run tables -- GpuModel
//                                          +------- events ------^
//
// vgpud creates, changes and destroys VFs as if an operator requested it. A GuestDriver loads on
// each VF. The PF core resets VFs that hang or exceed their preempt timeout; their drivers then
// load again. Gang slots of phase 0 begin at time 0. Figures and calls of the Observer differ from
// those of Simulator in three points. Slots without work count as idle. Only for the Observer, a
// hang counts as service by weight. The Observer never sees a gang compete.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

inline constexpr std::size_t kProductVfs = 16;

/// Time from an event to vgpud's answer: p99 of a thread's wake-up under load (docs/scheduling.md).
inline constexpr std::int64_t kMeasuredPlanDelayNs = 1'200'000;

struct VgpudModel {
    std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to vgpud's answer
    /// From stops_at_ns until continues_at_ns, vgpud does nothing, as if it were stopped or dead.
    std::int64_t stops_at_ns = INT64_MAX;
    std::int64_t continues_at_ns = INT64_MAX;  ///< end of that time
};

/// Runs a simulation and returns its figures. OutOfRange for more than kProductVfs VFs, for a
/// simulation without an end, or if gang slots never begin together. Also returns errors of vgpud.
daemon::Result<Figures> run_product(const Simulation& setup, Observer* observer = nullptr,
                                    const VgpudModel& vgpud = {});

}  // namespace vgpu::simulator
