// SPDX-License-Identifier: MIT
//
// WorkerPriority: decides when a worker thread runs at real-time priority, ahead of the host's
// other work. A worker that wakes usually finds work that a guest waits for, often with a time
// limit. So a worker has real-time priority while it has real-time budget (base/rt_budget.h), if
// the host allows it. A worker also has real-time priority from a park request until it has left
// the VF (engine.h), because the world switch waits for the last worker.
//
// "Own" marks functions that only the worker thread itself may call. Functions marked "with the
// lock", and functions without a mark, require the engine's lock.
#pragma once

#include <utility>

#include "pf-driver/softgpu/base/priority.h"
#include "pf-driver/softgpu/base/rt_budget.h"

namespace vgpu::softgpu::cp {

class WorkerPriority {
public:
    /// Own, with the lock. Records the calling thread; call before all other functions.
    void attach() { thread_ = pthread_self(); }
    /// Own, with the lock. Call when the worker enters the VF; raises the priority if the worker
    /// has budget.
    void wake(Nanoseconds now) {
        if (rt_budget_.wake(now, thread_time()) && !is_real_time_) raise();
    }
    /// Gives the thread real-time priority, if the host allows it.
    void raise() { is_real_time_ = make_real_time(thread_, kRealTime); }
    /// Own. True if the worker has budget. If so, call charge() after work.
    [[nodiscard]] bool has_budget() const { return rt_budget_.allows_real_time(); }
    /// Own. Charges the CPU time used since the last wake() or charge(); false if no budget is
    /// left.
    [[nodiscard]] bool charge() { return has_budget() && rt_budget_.charge(thread_time()); }
    /// Records that the thread loses real-time priority. True if the thread had real-time priority:
    /// the worker then calls lower().
    [[nodiscard]] bool clear_real_time() { return std::exchange(is_real_time_, false); }
    /// Own. Gives the thread normal priority. The host may preempt the thread at once, so prefer to
    /// call this without a lock that other threads need.
    void lower() const { make_normal(thread_); }

private:
    pthread_t thread_{};
    RtBudget rt_budget_;  ///< real-time budget after a wake; only the worker itself uses it
    bool is_real_time_ = false;
};

}  // namespace vgpu::softgpu::cp
