// SPDX-License-Identifier: MIT
//
// ResetRateLimiter: limits how often clients may reset a device. A reset delays the whole GPU,
// because world switches wait for the reset, and the PF then checks the VF. The limiter is a leaky
// bucket: a reset adds one, and one leaks out per Spec::gap. While the level is above Spec::burst,
// clients of the device are not served. A well-behaved driver never notices the limit, because it
// waits 100 ms after each reset (PCIe 6.0, 6.6.2).
//
// The caller passes the time; this class reads no clock. Only the io thread uses the class.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace vgpu::softgpu::vfio_user {

class ResetRateLimiter {
public:
    using Time = std::chrono::steady_clock::time_point;

    struct Spec {
        unsigned burst = 16;                 ///< level above which clients are not served
        std::chrono::milliseconds gap{100};  ///< time until one reset leaks out; zero: no limit
    };

    ResetRateLimiter() = default;
    explicit ResetRateLimiter(const Spec& spec) : spec_(spec) {}

    /// Adds `resets` resets to the bucket. Session also counts one reset for each client that is
    /// detached.
    void count(std::uint64_t resets, Time now) {
        if (resets == 0) return;
        empty_at_ = std::max(empty_at_, now) + static_cast<std::int64_t>(resets) * spec_.gap;
    }
    /// No client of the device is served before this time, at which the level falls to Spec::burst.
    [[nodiscard]] Time free_at() const { return empty_at_ - spec_.burst * spec_.gap; }

private:
    Spec spec_{};
    Time empty_at_{};  ///< the level at time t is (empty_at_ - t) / gap, at least 0
};

}  // namespace vgpu::softgpu::vfio_user
