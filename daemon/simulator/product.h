// SPDX-License-Identifier: MIT
//
// run_product(): simulates the product, which means the shipped parts, instead of a Policy. vgpud's
// GpuModel makes run tables from contracts and events, the PF core executes them, and a ModelGpu is
// the device. All run in virtual time; vgpud reads an event plan_delay_ns after the PF core has
// reported it, or earlier if it plans earlier.
//
//   arrivals, changes --> ModelGpu <--> PF core <-- run tables -- GpuModel
//                                          +------- events ------^
//
// vgpud creates, changes and destroys VFs as if an operator requested this. A GuestDriver loads on
// each VF. The PF core resets VFs that hang or exceed their preempt timeout; the drivers of these
// VFs then load again, except after a VfFault with stays_out. The slots of gangs with phase 0 begin
// at time 0. Some results differ from those of Simulator:
//   - In the figures, slots without work count as idle time.
//   - For the Observer, but not in the figures, a hang counts as service by weight.
//   - The Observer never sees a gang compete, and sees another VF compete only after a run table
//     has given the VF a share.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// Maximum number of VFs in a simulation of the product.
inline constexpr std::size_t kProductVfs = 16;

/// Time from an event to vgpud's answer: the measured p99 (docs/decisions/0010-simulator.md).
inline constexpr std::int64_t kMeasuredPlanDelayNs = 1'200'000;

/// How long the simulated vgpud takes to answer, and when it is stopped.
struct VgpudModel {
    std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to vgpud's answer
    /// From stops_at_ns to continues_at_ns of the simulation, vgpud neither reads events nor plans
    /// by itself. It still carries out each Change. INT64_MAX: never.
    std::int64_t stops_at_ns = INT64_MAX;
    std::int64_t continues_at_ns = INT64_MAX;
};

/// Runs a simulation and returns its figures. OutOfRange for more than kProductVfs VFs, for a
/// simulation without an end, or if the round of the gangs is too long (gang_round.h). TimedOut if
/// a driver does not get full access. Also returns errors of vgpud.
daemon::Result<Figures> run_product(const Simulation& setup, Observer* observer = nullptr,
                                    const VgpudModel& vgpud = {});

}  // namespace vgpu::simulator
