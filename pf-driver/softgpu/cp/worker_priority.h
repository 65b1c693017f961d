// SPDX-License-Identifier: MIT
//
// WorkerPriority: decides when a worker thread runs in real time, before the host's other work. A
// guest waits for most of the work for which a worker wakes, often with a time limit. So a worker
// is in real time while it has budget (RtBudget). It is also in real time from the request to leave
// the VF until it has left, because the world switch waits for the last worker.
//
// The worker itself makes the calls marked "own"; the others are made with the engine's lock held.
#pragma once

#include <utility>

#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/base/rt_budget.h"

namespace vgpu::softgpu::cp {

class WorkerPriority {
public:
    /// Own, with the lock. Call first: records the thread.
    void attach() { thread_ = pthread_self(); }
    /// Own, with the lock. The worker begins to work.
    void wake(Nanoseconds now) {
        if (rt_budget_.wake(now, thread_time()) && !is_real_time_) hasten();
    }
    void hasten() { is_real_time_ = make_real_time(thread_, kRealTime); }
    /// Own. The worker has budget, so its CPU time must be counted.
    [[nodiscard]] bool is_rt() const { return rt_budget_.is_on(); }
    /// Own. Counts the CPU time; false if the budget is spent.
    [[nodiscard]] bool goes_on() { return is_rt() && rt_budget_.go_on(thread_time()); }
    /// True if the thread was in real time: call relax() then.
    [[nodiscard]] bool end() { return std::exchange(is_real_time_, false); }
    /// Own. The host may preempt the thread at once, so a caller best holds no lock that other
    /// threads need.
    void relax() const { make_normal(thread_); }

private:
    pthread_t thread_{};
    RtBudget rt_budget_;  ///< own; the budget after a wake
    bool is_real_time_ = false;
};

}  // namespace vgpu::softgpu::cp
