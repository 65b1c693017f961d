// SPDX-License-Identifier: MIT
//
// WorkerPriority: when a worker thread comes before the host's other work. A guest waits for what a
// worker wakes for, often with a limit: it is in real time as long as it has budget (Haste), and
// from the moment it is asked to leave until it has left, since the switch waits for the last one.
//
// "Own" calls are the worker's; the others are made with the engine's lock held.
#pragma once

#include <utility>

#include "pf-driver/softgpu/base/haste.h"
#include "pf-driver/softgpu/base/priority.h"

namespace vgpu::softgpu::cp {

class WorkerPriority {
public:
    /// Own, with the lock: the thread is known from here on.
    void attach() { thread_ = pthread_self(); }
    /// Own, with the lock: there is work.
    void wake(Nanoseconds now) {
        if (haste_.wake(now, thread_time()) && !is_real_time_) hasten();
    }
    void hasten() { is_real_time_ = make_real_time(thread_, kRealTime); }
    /// Own: has budget, so its time has to be counted.
    [[nodiscard]] bool is_hasty() const { return haste_.is_on(); }
    /// Own: counts; false if the budget is spent.
    [[nodiscard]] bool goes_on() { return is_hasty() && haste_.go_on(thread_time()); }
    /// True if the thread is in real time no longer: relax() is to follow.
    [[nodiscard]] bool end() { return std::exchange(is_real_time_, false); }
    /// Own. The host may put the thread aside at once: best without a lock that others need.
    void relax() const { make_normal(thread_); }

private:
    pthread_t thread_{};
    Haste haste_;  ///< its own; real time because it has just woken
    bool is_real_time_ = false;
};

}  // namespace vgpu::softgpu::cp
