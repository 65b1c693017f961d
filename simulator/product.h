// SPDX-License-Identifier: MIT
//
// Product: a simulation under what is shipped, not under a Policy: vgpud's GpuModel makes run
// tables from contracts and events, the PF core carries them out and keeps the contracts, a
// ModelGpu is the device. All of it in virtual time; vgpud answers to events after plan_delay_ns.
//
//   arrivals, changes --> ModelGpu <--> PF core <-- run tables -- GpuModel
//                                          +------- events ------^
//
// VFs are created, loaded by a guest's driver, changed and destroyed as an operator would. Figures
// and what a Witness is told mean the same as those of Simulator, except that slots of strict VFs
// without work count as idle.
#pragma once

#include "daemon/ports/result.h"
#include "simulator/planned.h"
#include "simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// VFs that one run table can hold.
inline constexpr std::size_t kProductVfs = 16;

struct VgpudModel {
    std::int64_t plan_delay_ns = kMeasuredPlanDelayNs;  ///< from an event to its answer
    /// It hears and says nothing then, as one that is stopped, or dead and not started again.
    std::int64_t stops_at_ns = INT64_MAX;
    std::int64_t continues_at_ns = INT64_MAX;
};

/// OutOfRange with more than kProductVfs VFs, or with overruns for which VFs are reset; what vgpud
/// refuses is refused with its words.
daemon::Result<Figures> run_product(const Simulation& setup, Witness* witness = nullptr,
                                    const VgpudModel& vgpud = {});

}  // namespace vgpu::simulator
