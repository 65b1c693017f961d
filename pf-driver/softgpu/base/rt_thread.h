// SPDX-License-Identifier: MIT
//
// RtThread: gives the thread that answers guests real-time priority while its RtBudget has budget
// left. The thread sleeps in real time, so that the host's other work cannot keep it from waking.
// When its budget is spent, it is a normal thread until the budget has refilled. The thread itself
// makes the object and is its only user.
#pragma once

#include <optional>

#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/base/rt_budget.h"

namespace vgpu::softgpu {

class RtThread {
public:
    /// A larger budget than a worker's, because a driver that starts makes thousands of register
    /// accesses in a row.
    static constexpr RtBudget::Spec kAnswers{.budget = std::chrono::milliseconds(5), .refill = 10};

    RtThread() { woke(); }

    /// Call first after a sleep.
    void woke() { follow(rt_budget_.wake(clock_.now(), thread_time())); }
    /// Call last before a sleep, and after each piece of work.
    void worked() { follow(rt_budget_.go_on(thread_time())); }
    /// The longest sleep after which the thread is in real time again before new work arrives; no
    /// limit if it is in real time already or never will be.
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
    RtBudget rt_budget_{kAnswers};
    bool is_real_time_ = false;
    bool is_allowed_ = true;  ///< the host has not refused real time
};

}  // namespace vgpu::softgpu
