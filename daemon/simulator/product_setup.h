// SPDX-License-Identifier: MIT
//
// The configuration of a simulated GPU for vgpud and the PF core, for product.cpp.
#pragma once

#include "daemon/service/gpu/gpu.h"
#include "daemon/simulator/model_gpu.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// Virtual time before time 0 of a simulation, in which the VFs' drivers load.
inline constexpr std::int64_t kWarmUpNs = 1'500'000'000;

[[nodiscard]] daemon::GpuConfig gpu_config();

/// Options with which gang slots of phase 0 begin at time 0 of `setup`.
[[nodiscard]] ModelGpu::Options device_options(const Simulation& setup);

[[nodiscard]] daemon::VfQos qos_of(const VfSetup& setup);

}  // namespace vgpu::simulator
