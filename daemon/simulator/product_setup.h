// SPDX-License-Identifier: MIT
//
// The configuration of a simulated GPU for vgpud, and of its ModelGpu. Used by product.cpp.
#pragma once

#include "daemon/service/gpu/gpu.h"
#include "daemon/simulator/model_gpu.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// Minimum of the virtual time before time 0 of a simulation, in which the VFs' drivers load and
/// vgpud plans.
inline constexpr std::int64_t kWarmUpNs = 1'500'000'000;

/// The configuration of the GPU for vgpud.
[[nodiscard]] daemon::GpuConfig gpu_config();

/// Options of the device. If there are gangs, the device's clock starts 2 · kWarmUpNs before the
/// start of a round (gang_round.h), because time 0 of the simulation must be the start of a round.
[[nodiscard]] ModelGpu::Options device_options(const Simulation& setup);

/// The contract of a VF, without weight and quantum, as settings for vgpud.
[[nodiscard]] daemon::VfQos qos_of(const VfSetup& setup);

}  // namespace vgpu::simulator
