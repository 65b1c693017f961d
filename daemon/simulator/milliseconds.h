// SPDX-License-Identifier: MIT
//
// Times in milliseconds, for people: the only place where nanoseconds of the simulator's clock
// become a fraction. Called by everything that prints figures of simulations and recordings; all
// computation uses whole nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace vgpu::simulator {

[[nodiscard]] inline double ms_of(std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

[[nodiscard]] inline double ms_of(std::int64_t ns) {
    return ms_of(std::chrono::nanoseconds{ns});
}

}  // namespace vgpu::simulator
