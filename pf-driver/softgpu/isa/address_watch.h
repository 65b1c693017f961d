// SPDX-License-Identifier: MIT
//
// AddressWatches: the four address watches of a VF (TCP_WATCHn_*). Each compares the vector memory
// accesses of the waves of one VMID with an address, in units of 64 bytes. A hit sets a bit of the
// wave's TRAPSTS, and is an exception if MODE.EXCP_EN says so.
//
// Register writes set the watches with the VF's lock held. Waves read them without the lock, so a
// change takes effect at a wave's next block of instructions or, in translated code, at the wave's
// next slice at the latest. A driver that clears VALID before it changes a watch's address, as
// Linux does, gets no hit from a mixture of the old and the new address, except from an access that
// a wave compares at that moment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::isa {

/// The kind of access of a vector memory instruction.
enum class WatchedAccess : std::uint8_t { Load, Store, Atomic };

/// The accesses that a watch reports: TCP_WATCHn_CNTL.MODE (kfd_dbg_trap_address_watch_mode).
enum class WatchMode : std::uint8_t { Loads = 0, NonLoads = 1, Atomics = 2, All = 3 };

struct AddressWatch {
    /// Addresses are compared in units of 1 << kUnitShift bytes.
    static constexpr unsigned kUnitShift = 6;

    bool is_valid = false;
    Vmid vmid{};
    WatchMode mode = WatchMode::All;
    std::uint64_t unit = 0;  ///< address >> kUnitShift
    std::uint64_t mask = 0;  ///< bits of `unit` that must be equal
};

class AddressWatches {
public:
    static constexpr unsigned kCount = 4;

    void set(unsigned which, const AddressWatch& watch);
    void clear();

    /// True if a wave of the VMID must call hits() at all.
    [[nodiscard]] bool is_watched(Vmid vmid) const {
        return ((vmids_.load(std::memory_order_relaxed) >> raw(vmid)) & 1) != 0;
    }
    /// The bits to set in TRAPSTS for an access of `size` bytes (at least one) at `va`.
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
    /// One bit per VMID that a valid watch compares.
    std::atomic<std::uint32_t> vmids_{0};
};

}  // namespace vgpu::softgpu::isa
