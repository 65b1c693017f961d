// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/gpu_clock.h"

namespace vgpu::softgpu::regs {

void claim_gpu_clock(RegisterFile& registers, const Clock& clock) {
    const auto latch = [&registers, &clock](RegisterIndex, std::uint32_t) {
        const std::uint64_t ticks = gpu_ticks(clock.now());
        registers.set(RegisterIndex{REG_GC_RLC_GPU_CLOCK_COUNT_LSB}, low32(ticks));
        registers.set(RegisterIndex{REG_GC_RLC_GPU_CLOCK_COUNT_MSB}, high32(ticks));
    };
    registers.claim(RegisterIndex{REG_GC_RLC_CAPTURE_GPU_CLOCK_COUNT}, 1, {}, latch);
}

}  // namespace vgpu::softgpu::regs
