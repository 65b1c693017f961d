// SPDX-License-Identifier: MIT
//
// ms_of(): milliseconds for display. This is the only place where the simulator's nanoseconds
// become a fraction; computation uses whole nanoseconds.
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
