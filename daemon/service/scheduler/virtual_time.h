// SPDX-License-Identifier: MIT
//
// Virtual time of the proportional class: nanoseconds of service per unit of weight, as a 128-bit
// fixed-point number with 40 bits of fraction. One charge is rounded by less than 2^-40 ns per unit
// of weight, so 10^9 charges of a VF of the largest weight are off by less than 10 ns; the range
// holds 10^6 years. Used by Proportional alone.
#pragma once

#include <cstdint>

namespace vgpu::daemon::scheduler {

/// A compiler's type (gcc, clang); a double would lose a ns within days.
using Virtual = __int128;

inline constexpr int kVirtualBits = 40;

/// Service of `ns` in virtual units that are not yet divided by a weight.
constexpr Virtual amount_of(std::int64_t ns) {
    return static_cast<Virtual>(ns) * (static_cast<Virtual>(1) << kVirtualBits);
}

/// How far `ns` of service takes an entity of `weight`.
constexpr Virtual virtual_of(std::int64_t ns, std::int64_t weight) {
    return amount_of(ns) / weight;
}

/// Nanoseconds in an amount, rounded to the nearest.
constexpr std::int64_t ns_of(Virtual amount) {
    const Virtual half = static_cast<Virtual>(1) << (kVirtualBits - 1);
    return static_cast<std::int64_t>((amount + half) >> kVirtualBits);
}

}  // namespace vgpu::daemon::scheduler
