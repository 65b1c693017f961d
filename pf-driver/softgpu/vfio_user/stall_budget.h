// SPDX-License-Identifier: MIT
//
// StallBudget: the time for which one slow client may delay the device, as a bucket. A thread that
// waits for the client longer than the grace drains the bucket while it waits. Several threads that
// wait at the same time drain it once, because they delay the device once. Time without a wait
// refills the bucket, by a percentage of that time. An empty bucket is spent until a reserve has
// accumulated, so that a client that never answers costs one long wait now and then, not a short
// wait every time.
//
// A client has two such buckets (DmaLimits): one for waits that exceed the grace, and one for waits
// of any length while the io thread is delayed, because many short waits add up.
//
// The caller (ClientMemory) passes time points in and holds a lock; this class reads no clock.
#pragma once

#include <chrono>

namespace vgpu::softgpu::vfio_user {

class StallBudget {
public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;

    struct Spec {
        std::chrono::milliseconds grace{1};       ///< part of each wait that is free
        std::chrono::milliseconds capacity{300};  ///< full bucket, as at the start
        std::chrono::milliseconds reserve{20};  ///< level at which a spent bucket may be used again
        unsigned refill_percent = 5;            ///< share of the time without a wait
    };

    /// The bucket is full at the start.
    StallBudget(Spec spec, Time now);

    /// True if no thread may wait for this client now.
    [[nodiscard]] bool is_spent(Time now);
    /// Starts to charge a wait. Returns the time at which the wait must end; end() must follow.
    /// Several waits at once drain the budget as one.
    [[nodiscard]] Time begin(Time now);
    /// Ends the charge for a wait.
    void end(Time now);

private:
    void refill(Time now);

    const Spec spec_;
    Clock::duration left_;
    Time refilled_;  // the time of the value in left_
    unsigned waits_ = 0;
    bool is_spent_ = false;
};

}  // namespace vgpu::softgpu::vfio_user
