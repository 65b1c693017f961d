// SPDX-License-Identifier: MIT
//
// WaitHistogram: counts recent waits by length, in constant memory. Recent are all waits that ended
// in the last 30 s, and some that ended up to 90 s ago. There are four buckets per power of two, so
// a quantile from 4 ns to half an hour is at most a quarter too large. Reads no clock: the caller
// passes the time.
#pragma once

#include "daemon/ports/clock.h"

#include <array>
#include <cstdint>

namespace vgpu::daemon {

class WaitHistogram {
public:
    /// The histogram has two halves, each for the waits that ended in a period of this length.
    static constexpr Nanoseconds kWindow = std::chrono::seconds(30);

    /// Adds a wait of `ns` that ended at `at`.
    void add(Nanoseconds ns, Nanoseconds at);
    /// A time that at least the fraction `part` (0..1) of the recent waits did not exceed, rounded
    /// up to the end of a bucket; 0 if there were none.
    [[nodiscard]] Nanoseconds quantile(double part, Nanoseconds now) const;

private:
    /// One bucket per ns below 4 ns, then four buckets per power of two. The last bucket begins at
    /// 7/8 · 2^41 ns (half an hour) and holds all longer waits; their quantile is 2^41 ns.
    static constexpr unsigned kBuckets = 160;
    using Counts = std::array<std::uint32_t, kBuckets>;

    [[nodiscard]] static unsigned bucket_of(std::uint64_t ns);
    [[nodiscard]] static std::uint64_t end_of(unsigned bucket);
    void rotate(Nanoseconds at);

    Counts current_{}, previous_{};
    Nanoseconds begin_{0};  ///< start of the current half
};

}  // namespace vgpu::daemon
