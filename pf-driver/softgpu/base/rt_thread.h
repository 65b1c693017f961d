// SPDX-License-Identifier: MIT
//
// RtThread: gives the io thread, which answers guests, real-time priority while its RtBudget has
// budget left. The thread keeps the priority while it sleeps, so that other work of the host cannot
// delay its wakeup. When the budget is spent, the thread is a normal thread until a part of the
// budget has refilled (RtBudget::Spec::resume_threshold()). The io thread itself makes the object
// and is its only user.
#pragma once

#include <optional>

#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/base/rt_budget.h"

namespace vgpu::softgpu {

class RtThread {
public:
    /// Larger than the default budget, which the engine's workers have: a guest's driver makes
    /// thousands of register accesses in a row when it starts.
    static constexpr RtBudget::Spec kAnswerBudget{.budget = std::chrono::milliseconds(5),
                                                  .refill = 10};

    RtThread() { woke(); }

    /// Call immediately after each sleep.
    void woke() { follow(rt_budget_.wake(clock_.now(), thread_time())); }
    /// Call after each piece of work, and immediately before each sleep.
    void worked() { follow(rt_budget_.charge(thread_time())); }
    /// How long the thread may sleep while no work arrives. After this time woke() restores
    /// real-time priority, so that the thread has this priority when work arrives. nullopt (no
    /// limit) if the thread has real-time priority already, or if the host refuses real-time
    /// priority.
    [[nodiscard]] std::optional<Nanoseconds> longest_sleep() const {
        if (is_real_time_ || !is_allowed_) return std::nullopt;
        return rt_budget_.recovery() + Nanoseconds{1};
    }

private:
    void follow(bool is_rt) {
        if (is_rt == is_real_time_ || !is_allowed_) return;
        is_real_time_ = is_rt;
        if (!is_rt) return make_normal(pthread_self());
        is_allowed_ = make_real_time(pthread_self(), kRealTime);
        is_real_time_ = is_allowed_;
    }

    SteadyClock clock_;
    RtBudget rt_budget_{kAnswerBudget};
    bool is_real_time_ = false;
    bool is_allowed_ = true;  ///< true until the host refuses real-time priority
};

}  // namespace vgpu::softgpu
