// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/address_watch.h"

namespace vgpu::softgpu::isa {

namespace {

/// The TRAPSTS bit of each watch: EXCP[7], then EXCP_HI (Linux, amdkfd/cwsr_trap_handler_gfx9.asm).
constexpr std::array<std::uint32_t, AddressWatches::kCount> kTrapSts = {1u << 7, 1u << 12, 1u << 13,
                                                                        1u << 14};

/// An address has 48 significant bits; the bits above may be zero or copies of bit 47.
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 48) - 1;

bool reports(WatchMode mode, WatchedAccess access) {
    switch (mode) {
        case WatchMode::Loads:
            return access == WatchedAccess::Load;
        case WatchMode::NonLoads:
            return access != WatchedAccess::Load;
        case WatchMode::Atomics:
            return access == WatchedAccess::Atomic;
        case WatchMode::All:
            break;
    }
    return true;
}

std::uint64_t unit_of(std::uint64_t va) {
    return (va & kAddressMask) >> AddressWatch::kUnitShift;
}

}  // namespace

void AddressWatches::set(unsigned which, const AddressWatch& watch) {
    Slot& slot = slots_[which];
    slot.is_valid = false;
    slot.vmid = watch.vmid;
    slot.mode = watch.mode;
    slot.unit = watch.unit;
    slot.mask = watch.mask;
    slot.is_valid = watch.is_valid;
    std::uint32_t vmids = 0;
    for (const Slot& each : slots_)
        if (each.is_valid) vmids |= 1u << raw(each.vmid.load());
    vmids_ = vmids;
}

void AddressWatches::clear() {
    for (unsigned i = 0; i < kCount; ++i) set(i, {});
}

bool AddressWatches::Slot::is_for(Vmid wave_vmid, WatchedAccess access) const {
    return is_valid && vmid.load() == wave_vmid && reports(mode, access);
}

/// An access has at most 16 bytes, so it overlaps at most two units.
std::uint32_t AddressWatches::hits(Vmid vmid, WatchedAccess access, std::uint64_t va,
                                   std::uint32_t size) const {
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < kCount; ++i) {
        const Slot& slot = slots_[i];
        if (!slot.is_for(vmid, access)) continue;
        const std::uint64_t mask = slot.mask;
        const std::uint64_t unit = slot.unit & mask;
        const bool is_hit = (unit_of(va) & mask) == unit || (unit_of(va + size - 1) & mask) == unit;
        if (is_hit) bits |= kTrapSts[i];
    }
    return bits;
}

}  // namespace vgpu::softgpu::isa
