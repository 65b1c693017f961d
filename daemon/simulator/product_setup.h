// SPDX-License-Identifier: MIT
//
// The GPU of a simulation under what is shipped: how vgpud and the PF core know it. Called by
// product.cpp when it begins.
#pragma once

#include "daemon/service/gpu/gpu.h"
#include "daemon/simulator/model_gpu.h"
#include "daemon/simulator/simulator.h"

#include <cstdint>

namespace vgpu::simulator {

/// Virtual time that VFs get until their drivers have loaded.
inline constexpr std::int64_t kSettleNs = 1'500'000'000;

[[nodiscard]] daemon::GpuConfig gpu_config();

/// The device is made so that time 0 of `setup` is one at which slots of gangs begin.
[[nodiscard]] ModelGpu::Options device_options(const Simulation& setup);

[[nodiscard]] daemon::VfQos qos_of(const VfSetup& setup);

}  // namespace vgpu::simulator
