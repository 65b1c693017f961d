// SPDX-License-Identifier: MIT
//
// WaitHistogram: counts the waits of the last 30 to 60 s by length. Has four buckets per octave, so
// a quantile is at most a quarter too large. The caller passes the time.
#pragma once

#include "daemon/ports/clock.h"

#include <array>
#include <cstdint>

namespace vgpu::daemon {

class WaitHistogram {
public:
    /// Length of a half of the histogram. Waits are counted in the current half and the half
    /// before.
    static constexpr Nanoseconds kWindow = std::chrono::seconds(30);

    void add(Nanoseconds ns, Nanoseconds at);
    /// A time that at least the fraction `part` (0..1) of the waits did not exceed; 0 if there were
    /// no waits.
    [[nodiscard]] Nanoseconds quantile(double part, Nanoseconds now) const;

private:
    /// Four buckets per power of two from 4 ns on. The last bucket begins at 7/8 · 2^41 ns (half an
    /// hour).
    static constexpr unsigned kBuckets = 160;
    using Counts = std::array<std::uint32_t, kBuckets>;

    [[nodiscard]] static unsigned bucket_of(std::uint64_t ns);
    [[nodiscard]] static std::uint64_t end_of(unsigned bucket);
    void rotate(Nanoseconds at);

    Counts current_{}, previous_{};
    Nanoseconds begin_{0};  ///< start of the current half
};

}  // namespace vgpu::daemon
