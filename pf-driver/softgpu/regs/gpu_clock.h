// SPDX-License-Identifier: MIT
//
// The GPU's free-running 27 MHz counter, which drivers read through registers and packets. A write
// of RLC_CAPTURE_GPU_CLOCK_COUNT copies the counter into RLC_GPU_CLOCK_COUNT_LSB and _MSB, so that
// a driver reads both halves of one instant. All register accesses are made with the VF's lock
// held.
#pragma once

#include <cstdint>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

/// The counter's value at `now`; 27 MHz is the clock that the VBIOS reports. Converts microseconds
/// and the rest separately, so that no product overflows for centuries.
constexpr std::uint64_t gpu_ticks(Nanoseconds now) {
    constexpr std::uint64_t kTicksPerMicrosecond = 27;
    const auto ns = static_cast<std::uint64_t>(now.count());
    return ns / 1000 * kTicksPerMicrosecond + ns % 1000 * kTicksPerMicrosecond / 1000;
}

/// Gives the clock registers of `registers` their behaviour. `clock` must outlive `registers`.
inline void claim_gpu_clock(RegisterFile& registers, const Clock& clock) {
    const auto latch = [&registers, &clock](RegisterIndex, std::uint32_t) {
        const std::uint64_t ticks = gpu_ticks(clock.now());
        registers.set(RegisterIndex{REG_GC_RLC_GPU_CLOCK_COUNT_LSB}, low32(ticks));
        registers.set(RegisterIndex{REG_GC_RLC_GPU_CLOCK_COUNT_MSB}, high32(ticks));
    };
    registers.claim(RegisterIndex{REG_GC_RLC_CAPTURE_GPU_CLOCK_COUNT}, 1, {}, latch);
}

}  // namespace vgpu::softgpu::regs
