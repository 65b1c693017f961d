// SPDX-License-Identifier: MIT
//
// AddressWatches: the four address watches of a VF (TCP_WATCHn_*), which a debugger in the guest
// uses as watchpoints. A watch has an address and a VMID. It compares its address with those of
// vector memory accesses by the waves of that VMID, in units of 64 bytes. A hit sets a bit of the
// wave's TRAPSTS register. If the wave's MODE.EXCP_EN has the bit for address watches
// (mode::kAddressWatch), the hit also raises an exception.
//
// Register writes set the watches with the VF's lock held; waves read the watches without the lock.
// A change takes effect at the latest at a wave's next block of instructions or, in translated
// code, at the wave's next slice (execute.h). Linux clears VALID before it changes a watch's
// address. So only an access whose comparison began before VALID was cleared can be compared with a
// mixture of the old and the new address.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::isa {

/// The kind of access of a vector memory instruction.
enum class WatchedAccess : std::uint8_t { Load, Store, Atomic };

/// The kinds of access that a watch reports. The values are those of TCP_WATCHn_CNTL.MODE (Linux,
/// kfd_dbg_trap_address_watch_mode).
enum class WatchMode : std::uint8_t { Loads = 0, NonLoads = 1, Atomics = 2, All = 3 };

/// The settings of one watch.
struct AddressWatch {
    /// Addresses are compared in units of 1 << kUnitShift bytes.
    static constexpr unsigned kUnitShift = 6;

    bool is_valid = false;
    Vmid vmid{};
    WatchMode mode = WatchMode::All;
    std::uint64_t unit = 0;  ///< address >> kUnitShift
    std::uint64_t mask = 0;  ///< the bits of `unit` that are compared
};

/// The watches of one VF.
class AddressWatches {
public:
    static constexpr unsigned kCount = 4;

    /// Replaces watch `which`, 0 to kCount - 1. The caller holds the VF's lock.
    void set(unsigned which, const AddressWatch& watch);
    /// Makes all watches invalid. The caller holds the VF's lock.
    void clear();

    /// False if no valid watch is for the VMID; hits() is then always 0.
    [[nodiscard]] bool is_watched(Vmid vmid) const {
        return ((vmids_.load(std::memory_order_relaxed) >> raw(vmid)) & 1) != 0;
    }
    /// The bits to set in TRAPSTS for an access of `size` bytes (1 to 16) at `va`.
    [[nodiscard]] std::uint32_t hits(Vmid vmid, WatchedAccess access, std::uint64_t va,
                                     std::uint32_t size) const;

private:
    struct Slot {
        std::atomic<bool> is_valid{false};
        std::atomic<Vmid> vmid{};
        std::atomic<WatchMode> mode{};
        std::atomic<std::uint64_t> unit{0};
        std::atomic<std::uint64_t> mask{0};

        [[nodiscard]] bool is_for(Vmid wave_vmid, WatchedAccess access) const;
    };
    std::array<Slot, kCount> slots_;
    /// Bit n is set if a valid watch is for VMID n.
    std::atomic<std::uint32_t> vmids_{0};
};

}  // namespace vgpu::softgpu::isa
