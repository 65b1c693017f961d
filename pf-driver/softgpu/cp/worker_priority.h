// SPDX-License-Identifier: MIT
//
// WorkerPriority: decides when a worker thread runs at real-time priority, ahead of the host's
// other work. A guest waits for most of the work for which a worker wakes, often with a time limit.
// So a worker has real-time priority while it has budget (RtBudget). A worker also has real-time
// priority from the request to leave the VF until it has left, because the world switch waits for
// the last worker.
//
// The worker itself makes the calls marked "own". All other calls are made with the engine's lock
// held.
#pragma once

#include <utility>

#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/base/rt_budget.h"

namespace vgpu::softgpu::cp {

class WorkerPriority {
public:
    /// Own, with the lock. Records the calling thread; call before all other functions.
    void attach() { thread_ = pthread_self(); }
    /// Own, with the lock. Call when the worker begins to work; raises the priority if the worker
    /// has budget.
    void wake(Nanoseconds now) {
        if (rt_budget_.wake(now, thread_time()) && !is_real_time_) raise();
    }
    /// Gives the thread real-time priority, if the host allows it.
    void raise() { is_real_time_ = make_real_time(thread_, kRealTime); }
    /// Own. True if the worker has budget; its CPU time must then be counted.
    [[nodiscard]] bool has_budget() const { return rt_budget_.is_on(); }
    /// Own. Counts the CPU time; false if no budget is left.
    [[nodiscard]] bool charge() { return has_budget() && rt_budget_.charge(thread_time()); }
    /// Records that the thread loses real-time priority. True if it had it: call lower() then.
    [[nodiscard]] bool clear_real_time() { return std::exchange(is_real_time_, false); }
    /// Own. The host may preempt the thread at once, so a caller best holds no lock that other
    /// threads need.
    void lower() const { make_normal(thread_); }

private:
    pthread_t thread_{};
    RtBudget rt_budget_;  ///< real-time budget after a wake; only the worker itself uses it
    bool is_real_time_ = false;
};

}  // namespace vgpu::softgpu::cp
