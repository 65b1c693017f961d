// SPDX-License-Identifier: MIT
//
// RtThread: gives the thread that answers guests real-time priority while its RtBudget has budget
// left. With budget left, the thread keeps that priority while it sleeps, so that the host's other
// work cannot keep it from waking. When the budget is spent, the thread is a normal one until the
// budget has refilled. The thread itself makes the object and is its only user.
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
    void worked() { follow(rt_budget_.charge(thread_time())); }
    /// The time of sleep after which woke() raises the thread to real time again. A thread that
    /// wakes at that time has the priority before new work arrives. nullopt if the thread is in
    /// real time already, or if the host refuses real time.
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
    bool is_allowed_ = true;  ///< true until the host refuses real-time priority
};

}  // namespace vgpu::softgpu
