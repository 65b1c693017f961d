// SPDX-License-Identifier: MIT
//
// StallBudget: how long one client's slowness may hold up the device, as a bucket of time. A thread
// that waits for the client longer than the grace takes from the bucket while it waits; several at
// the same time take once, because they hold the device up once. Time in which nobody waits refills
// it, by a few per cent of that time. An empty bucket is spent until a reserve has come together,
// so that a client that never answers costs one long wait now and then and not a short one every
// time.
//
// Two such buckets belong to a client (DmaLimits): waits that outlast a moment, and waits of any
// length while the io thread is held up, for many short ones make a long one there.
//
// Time points are passed in: nothing here looks at a clock. The caller locks (ClientMemory).
#pragma once

#include <chrono>

namespace vgpu::softgpu::vfio_user {

class StallBudget {
public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;

    struct Spec {
        std::chrono::milliseconds grace{1};       ///< free of charge
        std::chrono::milliseconds capacity{300};  ///< full bucket, as at the start
        std::chrono::milliseconds reserve{20};    ///< a spent bucket is good again with this much
        unsigned refill_percent = 5;              ///< of the time nobody waits
    };

    /// Full at the start.
    StallBudget(Spec spec, Time now);

    /// Nobody shall wait for this client now.
    [[nodiscard]] bool is_spent(Time now);
    /// A wait is to be charged. Returns when it has to be over; end() must follow.
    /// May be called by several waits at once; the budget drains as for one.
    [[nodiscard]] Time begin(Time now);
    void end(Time now);

private:
    void settle(Time now);

    const Spec spec_;
    Clock::duration left_;
    Time settled_;  // left_ is of this time
    unsigned waits_ = 0;
    bool is_spent_ = false;
};

}  // namespace vgpu::softgpu::vfio_user
