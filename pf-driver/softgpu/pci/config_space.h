// SPDX-License-Identifier: MIT
//
// ConfigSpace: the 4 KiB configuration space of one function. Every byte has a mask of writable
// bits and a mask of bits that writing 1 clears; all other bits are read-only. claim() replaces the
// storage of a range by handlers. on_write() registers a callback that runs after a write to a
// range has been stored.
//
// A handler is called once per access, with all bytes of the access that are in its range, because
// drivers write a command and its arguments as one dword. Only the io thread (gpu.h) uses a
// ConfigSpace. Call claim() and on_write() while the GPU is built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "pf-driver/hw/pci.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::pci {

/// A register that is added to a configuration space; little endian, at most 4 bytes.
struct ConfigRegister {
    std::uint32_t offset;  ///< from the start of its capability
    std::uint32_t bytes;
    std::uint32_t value;           ///< after power-on
    std::uint32_t writable = 0;    ///< bits that a driver may change
    std::uint32_t one_clears = 0;  ///< bits that a driver clears by writing 1
};

/// Unless a function says otherwise, an offset counts bytes from the start of configuration space.
class ConfigSpace {
public:
    static constexpr std::size_t kBytes = VGPU_PCI_CONFIG_BYTES;

    /// Accesses of a driver; offset + size <= kBytes. An access across the edge of a claimed range
    /// is split.
    void read(std::uint32_t offset, std::span<std::byte> out) const;
    void write(std::uint32_t offset, std::span<const std::byte> data);

    /// Reads the values after power-on instead of the present ones; calls no handlers.
    void read_power_on(std::uint32_t offset, std::span<std::byte> out) const;

    /// Handlers of a claimed range; offsets count from the start of the range. Read fills all of
    /// `out`. Read must not have side effects, because a client may read the whole space to save
    /// it.
    using Read = std::function<void(std::uint32_t offset, std::span<std::byte> out)>;
    using Write = std::function<void(std::uint32_t offset, std::span<const std::byte> data)>;
    /// Sets the handlers of [first, first + count); a byte claimed twice is a programming error.
    void claim(std::uint32_t first, std::uint32_t count, Read read, Write write);
    /// Registers a callback that runs once per write() that touches [first, first + count), after
    /// the data is stored. The callback may call get() and set().
    void on_write(std::uint32_t first, std::uint32_t count, std::function<void()> changed);

    /// While `is_absent` returns true, reads give all ones and writes are lost.
    void set_absence(std::function<bool()> is_absent) { is_absent_ = std::move(is_absent); }
    [[nodiscard]] bool is_absent() const { return is_absent_ && is_absent_(); }

    // For building and for the device itself: these functions ignore masks and run no callbacks.
    template <typename T> [[nodiscard]] T get(std::uint32_t offset) const {
        return load<T>(value_, offset);
    }
    template <typename T> void set(std::uint32_t offset, const T& value) {
        store(std::span<std::byte>(value_), offset, value);
    }
    /// Adds registers whose offsets count from `base`.
    void add(std::uint32_t base, std::initializer_list<ConfigRegister> registers);
    /// Makes the present state the state that reset() restores.
    void seal() { power_on_ = value_; }
    void reset() { value_ = power_on_; }

private:
    struct Claim {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        Read read;
        Write write;
    };
    struct Observer {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        std::function<void()> changed;
    };
    using Image = std::array<std::byte, kBytes>;

    void store_masked(std::uint32_t offset, std::span<const std::byte> data);

    Image value_{};
    Image writable_{};
    Image one_clears_{};
    Image power_on_{};
    std::array<bool, kBytes> is_claimed_{};
    std::vector<Claim> claims_;
    std::vector<Observer> observers_;
    /// Returns true while an injected fault (iov::FaultPoint::Device) keeps the PF's link down.
    std::function<bool()> is_absent_;
};

}  // namespace vgpu::softgpu::pci
