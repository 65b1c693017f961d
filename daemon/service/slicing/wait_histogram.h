// SPDX-License-Identifier: MIT
//
// WaitHistogram: how long the waits of the last half minute to minute were, in buckets of four per
// octave: a quantile is at most a quarter too large. Plain; the clock is the caller's.
#pragma once

#include "daemon/ports/clock.h"

#include <array>
#include <cstdint>

namespace vgpu::daemon {

class WaitHistogram {
public:
    static constexpr Nanoseconds kWindow = std::chrono::seconds(30);

    /// A wait of `ns` ended at `at`.
    void add(Nanoseconds ns, Nanoseconds at);
    /// No less than `part` of the waits were shorter than that; 0 if there were none.
    [[nodiscard]] Nanoseconds quantile(double part, Nanoseconds now) const;

private:
    /// Four for each power of two from 4 ns up: the last begins at seven eighths of 2^41 ns, or
    /// half an hour.
    static constexpr unsigned kBuckets = 160;
    using Counts = std::array<std::uint32_t, kBuckets>;

    [[nodiscard]] static unsigned bucket_of(std::uint64_t ns);
    [[nodiscard]] static std::uint64_t end_of(unsigned bucket);
    void turn(Nanoseconds at);

    Counts current_{}, previous_{};
    Nanoseconds begin_{0};  ///< of current_
};

}  // namespace vgpu::daemon
