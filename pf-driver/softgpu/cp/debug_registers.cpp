// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/debug_registers.h"

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr std::uint32_t kFirst = REG_GC_TCP_WATCH0_ADDR_H;
constexpr std::uint32_t kStride = 3;  ///< registers per watch

std::uint32_t get(const Core& core, std::uint32_t which, unsigned watch) {
    return core.registers.get(RegisterIndex{which + watch * kStride});
}

/// MASK has no bits for the upper part of an address, so that part is always compared.
isa::AddressWatch decode(const Core& core, unsigned watch) {
    constexpr unsigned kHighShift = 32 - isa::AddressWatch::kUnitShift;
    constexpr std::uint64_t kMaskBits = HW_FIELD_MASK(TCP_WATCH0_CNTL, MASK);
    const std::uint32_t control = get(core, REG_GC_TCP_WATCH0_CNTL, watch);
    const std::uint64_t high =
        HW_GET(TCP_WATCH0_ADDR_H, ADDR, get(core, REG_GC_TCP_WATCH0_ADDR_H, watch));
    return {
        .is_valid = HW_GET(TCP_WATCH0_CNTL, VALID, control) != 0,
        .vmid = Vmid{static_cast<std::uint8_t>(HW_GET(TCP_WATCH0_CNTL, VMID, control))},
        .mode = static_cast<isa::WatchMode>(HW_GET(TCP_WATCH0_CNTL, MODE, control)),
        .unit = high << kHighShift |
                HW_GET(TCP_WATCH0_ADDR_L, ADDR, get(core, REG_GC_TCP_WATCH0_ADDR_L, watch)),
        .mask = ~kMaskBits | HW_GET(TCP_WATCH0_CNTL, MASK, control),
    };
}

void follow(Core& core, unsigned watch) {
    core.watches.set(watch, decode(core, watch));
}

}  // namespace

void claim_watch_registers(Core& core) {
    core.registers.claim(RegisterIndex{kFirst}, isa::AddressWatches::kCount * kStride, {},
                         [&core](RegisterIndex index, std::uint32_t) {
                             follow(core, (raw(index) - kFirst) / kStride);
                         });
}

void follow_watch_registers(Core& core) {
    for (unsigned watch = 0; watch < isa::AddressWatches::kCount; ++watch) follow(core, watch);
}

isa::LaunchExceptions launch_exceptions(const Core& core) {
    const std::uint32_t mask = core.registers.get(RegisterIndex{REG_GC_SPI_GDBG_TRAP_MASK});
    return {.enabled = HW_GET(SPI_GDBG_TRAP_MASK, EXCP_EN, mask),
            .replace = HW_GET(SPI_GDBG_TRAP_MASK, REPLACE, mask) != 0};
}

}  // namespace vgpu::softgpu::cp
