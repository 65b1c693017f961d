// SPDX-License-Identifier: MIT
//
// ms_of(): converts nanoseconds to milliseconds, for display and JSON. The simulator itself uses
// whole nanoseconds.
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
