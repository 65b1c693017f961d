// SPDX-License-Identifier: MIT
//
// ResetRateLimiter: limits how often clients may reset a device, as a leaky bucket that each reset
// fills by one. A reset delays the whole GPU: commands of the world switch wait for it, and the PF
// checks the VF after it. So while the level of a device's bucket is above the capacity, the
// device's clients are not served. A well-behaved driver does not notice this limit: after a reset
// it leaves the function alone for 100 ms (PCIe 6.0, 6.6.2).
//
// The caller passes time points in; this file reads no clock. Used on the io thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace vgpu::softgpu::vfio_user {

class ResetRateLimiter {
public:
    using Time = std::chrono::steady_clock::time_point;

    struct Spec {
        unsigned burst = 16;                 ///< capacity of the bucket in resets
        std::chrono::milliseconds gap{100};  ///< time in which one reset leaks out; zero: no limit
    };

    ResetRateLimiter() = default;
    explicit ResetRateLimiter(const Spec& spec) : spec_(spec) {}

    /// Adds `resets` resets to the bucket.
    void count(std::uint64_t resets, Time now) {
        if (resets == 0) return;
        empty_at_ = std::max(empty_at_, now) + static_cast<std::int64_t>(resets) * spec_.gap;
    }
    /// No client of the device is served before this time.
    [[nodiscard]] Time free_at() const { return empty_at_ - spec_.burst * spec_.gap; }

private:
    Spec spec_{};
    Time empty_at_{};  ///< time at which the bucket is empty again
};

}  // namespace vgpu::softgpu::vfio_user
