// SPDX-License-Identifier: MIT
//
// StallBudget: limits the time for which one slow client may delay the device. The budget is a
// bucket of time. A charged wait (between begin() and end()) drains the bucket as time passes.
// Several charged waits at the same time drain it only once, because they delay the device once.
// Time without a charged wait refills the bucket, by Spec::refill_percent of that time. An empty
// bucket is spent until its level is Spec::reserve again. So a client that never answers causes a
// wait now and then, not a short wait for every message.
//
// A client has two budgets (DmaLimits in device.h). `stalls` is charged for the part of each wait
// that exceeds the grace. `blocking` is charged for the whole of a wait that begins while the io
// thread or a park is already delayed, because many short waits add up.
//
// The caller (ClientMemory) passes the time and holds a lock; this class reads no clock and has no
// lock.
#pragma once

#include <chrono>

namespace vgpu::softgpu::vfio_user {

class StallBudget {
public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;

    struct Spec {
        std::chrono::milliseconds grace{1};       ///< see DmaLimits; the caller applies it
        std::chrono::milliseconds capacity{300};  ///< time in a full bucket
        std::chrono::milliseconds reserve{20};    ///< level at which a spent bucket is usable again
        unsigned refill_percent = 5;              ///< percent of the time without a charged wait
    };

    /// The bucket is full at the start.
    StallBudget(Spec spec, Time now);

    /// True if no wait that could be charged to this budget may begin now.
    [[nodiscard]] bool is_spent(Time now);
    /// Begins to charge a wait. Returns the time at which the bucket would be empty: the wait must
    /// end by then. end() must follow.
    [[nodiscard]] Time begin(Time now);
    /// Ends the charge of one wait.
    void end(Time now);

private:
    void refill(Time now);

    const Spec spec_;
    Clock::duration left_;  // level of the bucket at refilled_
    Time refilled_;         // time at which left_ was computed
    unsigned waits_ = 0;    // charged waits now
    bool is_spent_ = false;
};

}  // namespace vgpu::softgpu::vfio_user
