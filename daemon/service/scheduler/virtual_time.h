// SPDX-License-Identifier: MIT
//
// Virtual time of Proportional: ns of service per unit of weight, 128-bit fixed point with 40 bits
// of fraction. One charge rounds by less than 2^-40 ns per unit of weight, so 10^9 charges of a VF
// of the largest weight are off by less than 10 ns. The range is 10^6 years.
#pragma once

#include <cstdint>

namespace vgpu::daemon::scheduler {

/// A double would lose a ns within days.
using Virtual = __int128;

inline constexpr int kVirtualBits = 40;

/// Virtual time · weight for `ns` of service.
constexpr Virtual amount_of(std::int64_t ns) {
    return static_cast<Virtual>(ns) * (static_cast<Virtual>(1) << kVirtualBits);
}

/// Virtual time for `ns` of service of one VF.
constexpr Virtual virtual_of(std::int64_t ns, std::int64_t weight) {
    return amount_of(ns) / weight;
}

/// Rounded to the nearest.
constexpr std::int64_t ns_of(Virtual amount) {
    const Virtual half = static_cast<Virtual>(1) << (kVirtualBits - 1);
    return static_cast<std::int64_t>((amount + half) >> kVirtualBits);
}

}  // namespace vgpu::daemon::scheduler
