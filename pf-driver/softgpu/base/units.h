// SPDX-License-Identifier: MIT
//
// Bytes: a size in bytes as a type. 16_MiB is a Bytes, not an integer, so that a count of pages or
// MiB cannot be passed where bytes are required. Interfaces pass times as std::chrono durations.
// Plain numbers (in JSON, registers, saved state) have their unit in their name or comment.
#pragma once

#include <compare>
#include <cstdint>

namespace vgpu::softgpu {

/// Arithmetic wraps like std::uint64_t: code that adds sizes from a guest must check for overflow.
struct Bytes {
    std::uint64_t count = 0;

    constexpr auto operator<=>(const Bytes&) const = default;
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
    friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return {a.count * n}; }
    friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count / b.count; }
};

constexpr Bytes operator""_B(unsigned long long n) {
    return {n};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
    return {n << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
    return {n << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
    return {n << 30};
}

}  // namespace vgpu::softgpu
