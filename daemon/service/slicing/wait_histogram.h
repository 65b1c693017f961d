// SPDX-License-Identifier: MIT
//
// WaitHistogram: lengths of the waits of the last 30 to 60 s, in four buckets per octave: a
// quantile is at most a quarter too large. The caller gives the time.
#pragma once

#include "daemon/ports/clock.h"

#include <array>
#include <cstdint>

namespace vgpu::daemon {

class WaitHistogram {
public:
    static constexpr Nanoseconds kWindow = std::chrono::seconds(30);

    void add(Nanoseconds ns, Nanoseconds at);
    /// Upper bound of the shortest `part` of the waits; 0 if there were none.
    [[nodiscard]] Nanoseconds quantile(double part, Nanoseconds now) const;

private:
    /// Four per power of two from 4 ns up; the last begins at 7/8 · 2^41 ns (half an hour).
    static constexpr unsigned kBuckets = 160;
    using Counts = std::array<std::uint32_t, kBuckets>;

    [[nodiscard]] static unsigned bucket_of(std::uint64_t ns);
    [[nodiscard]] static std::uint64_t end_of(unsigned bucket);
    void turn(Nanoseconds at);

    Counts current_{}, previous_{};
    Nanoseconds begin_{0};  ///< of current_
};

}  // namespace vgpu::daemon
