// SPDX-License-Identifier: MIT
//
// Conversions between bytes and numbers. load() and store() are little endian, accept unaligned
// offsets, and assert that the access stays inside the caller's span. softgpu uses reinterpret_cast
// only in this file.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace vgpu::softgpu {

static_assert(std::endian::native == std::endian::little, "softgpu's memory formats are LE");

/// The T stored at byte `offset` of `bytes`; the span must hold all of the T.
template <typename T> T load(std::span<const std::byte> bytes, std::size_t offset = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    assert(offset + sizeof(T) <= bytes.size());
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

/// Stores `value` at byte `offset` of `bytes`; the span must have room for the whole value.
template <typename T> void store(std::span<std::byte> bytes, std::size_t offset, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    assert(offset + sizeof(T) <= bytes.size());
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

/// The bytes of a trivially copyable object.
template <typename T> std::span<std::byte> bytes_of(T& object) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_writable_bytes(std::span<T, 1>(&object, 1));
}
template <typename T> std::span<const std::byte> bytes_of(const T& object) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_bytes(std::span<const T, 1>(&object, 1));
}

/// An atomic view of the T at `at`, for memory that a guest or another thread may change at any
/// time. `at` must be aligned to sizeof(T).
template <typename T> std::atomic_ref<T> shared_at(std::byte* at) {
    static_assert(std::atomic_ref<T>::is_always_lock_free);
    assert(reinterpret_cast<std::uintptr_t>(at) % sizeof(T) == 0);
    return std::atomic_ref<T>(*reinterpret_cast<T*>(at));
}

/// Bits [first, first + count) of `value`, shifted down to bit 0. `first` is below 64; a count of
/// 64 or more returns all bits from `first` on.
constexpr std::uint64_t bits(std::uint64_t value, unsigned first, unsigned count) {
    const std::uint64_t mask = count >= 64 ? ~0ull : (1ull << count) - 1;
    return (value >> first) & mask;
}

/// True if bit `index` of `value` is set; `index` is below 64.
constexpr bool bit(std::uint64_t value, unsigned index) {
    return ((value >> index) & 1u) != 0;
}

/// Joins two dwords, such as a LO/HI pair of registers or of packet dwords, to a 64-bit value.
constexpr std::uint64_t join(std::uint32_t low, std::uint32_t high) {
    return (static_cast<std::uint64_t>(high) << 32) | low;
}
constexpr std::uint32_t low32(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high32(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace vgpu::softgpu
