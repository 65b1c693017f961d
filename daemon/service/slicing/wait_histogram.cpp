// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/wait_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vgpu::daemon {

/// The octave is floor(log2(ns)). The two bits after the highest bit of `ns` select the quarter of
/// the octave.
unsigned WaitHistogram::bucket_of(std::uint64_t ns) {
    if (ns < 4) return static_cast<unsigned>(ns);
    const auto octave = static_cast<unsigned>(std::bit_width(ns)) - 1;
    const auto quarter = static_cast<unsigned>(ns >> (octave - 2) & 3);
    return std::min(4 * (octave - 1) + quarter, kBuckets - 1);
}

/// The first value after the bucket.
std::uint64_t WaitHistogram::end_of(unsigned bucket) {
    if (bucket < 4) return bucket + 1;
    const unsigned octave = bucket / 4 + 1;
    return std::uint64_t{bucket % 4 + 5} << (octave - 2);
}

void WaitHistogram::rotate(Nanoseconds at) {
    if (at - begin_ < kWindow) return;
    // If nothing was added for a whole period, current_ is too old even for previous_.
    previous_ = at - begin_ < 2 * kWindow ? current_ : Counts{};
    current_ = {};
    begin_ = at;
}

void WaitHistogram::add(Nanoseconds ns, Nanoseconds at) {
    rotate(at);
    ++current_[bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns.count())))];
}

Nanoseconds WaitHistogram::quantile(double part, Nanoseconds now) const {
    const bool are_both_old = now - begin_ >= 2 * kWindow;
    const bool is_previous_old = now - begin_ >= kWindow;
    if (are_both_old) return Nanoseconds{0};
    const auto count = [&](unsigned bucket) -> std::uint64_t {
        return std::uint64_t{current_[bucket]} + (is_previous_old ? 0 : previous_[bucket]);
    };
    std::uint64_t all = 0;
    for (unsigned bucket = 0; bucket < kBuckets; ++bucket) all += count(bucket);
    if (all == 0) return Nanoseconds{0};
    const auto rank = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(all)));
    std::uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
        seen += count(bucket);
        if (seen >= std::max<std::uint64_t>(1, rank))
            return Nanoseconds{static_cast<std::int64_t>(end_of(bucket))};
    }
    return Nanoseconds{static_cast<std::int64_t>(end_of(kBuckets - 1))};
}

}  // namespace vgpu::daemon
