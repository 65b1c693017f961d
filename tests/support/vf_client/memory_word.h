// SPDX-License-Identifier: MIT
//
// Words of memory that the device reads or writes at the same time. Loads acquire and stores
// release, like a driver's barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace vgpu::test {

/// `where` is naturally aligned for T.
template <typename T> T load_shared(const std::byte* where) {
    return __atomic_load_n(static_cast<const T*>(static_cast<const void*>(where)),
                           __ATOMIC_ACQUIRE);
}
template <typename T> void store_shared(std::byte* where, T value) {
    __atomic_store_n(static_cast<T*>(static_cast<void*>(where)), value, __ATOMIC_RELEASE);
}

enum class Place { Vram, System };

/// Memory that the CPU and the device see: its address in some GPU address space, its backing (VRAM
/// offset or bus address) and its bytes for the CPU. A Buffer does not own the memory.
struct Buffer {
    std::uint64_t address = 0;
    std::uint64_t backing = 0;
    std::span<std::byte> cpu;
    Place place = Place::System;

    [[nodiscard]] std::uint64_t size() const { return cpu.size(); }
    template <typename T> [[nodiscard]] T load(std::uint64_t offset = 0) const {
        return load_shared<T>(cpu.subspan(offset, sizeof(T)).data());
    }
    template <typename T> void store(std::uint64_t offset, T value) const {
        store_shared<T>(cpu.subspan(offset, sizeof(T)).data(), value);
    }
    template <typename T> void fill_from(std::span<const T> values, std::uint64_t at = 0) const {
        std::memcpy(cpu.subspan(at, values.size_bytes()).data(), values.data(),
                    values.size_bytes());
    }
    template <typename T> void copy_to(std::span<T> values, std::uint64_t at = 0) const {
        std::memcpy(values.data(), cpu.subspan(at, values.size_bytes()).data(),
                    values.size_bytes());
    }
    [[nodiscard]] Buffer part(std::uint64_t offset, std::uint64_t bytes) const {
        return {address + offset, backing + offset, cpu.subspan(offset, bytes), place};
    }
};

}  // namespace vgpu::test
