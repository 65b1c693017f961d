// SPDX-License-Identifier: MIT
//
// RtBudget: the real-time budget of the io thread or of a worker of the engine. The budget is the
// CPU time that the thread may use at real-time priority; it refills as wall time passes. A mostly
// idle thread almost always has budget left, a busy thread almost never. In the long run, the
// budget allows at most 1 / Spec::refill of a CPU at real-time priority. Each object serves one
// thread. RtBudget only counts; the caller sets the priority.
#pragma once

#include <algorithm>

#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu {

class RtBudget {
public:
    /// Bounds the real-time CPU time of one thread: about `budget` at once, and 1 / `refill` of a
    /// CPU in the long run.
    struct Spec {
        Nanoseconds budget = std::chrono::milliseconds(1);  ///< CPU time of a full budget
        unsigned refill = 20;  ///< 1 ms of CPU time refills in `refill` ms of wall time

        /// The level from which a spent budget allows real time again.
        [[nodiscard]] Nanoseconds resume_threshold() const { return budget / 4; }
    };

    RtBudget() = default;
    explicit RtBudget(const Spec& spec) : spec_(spec), left_(spec.budget) {}

    /// Call after a sleep; `now` is wall time, `cpu` the CPU time that the thread has used since
    /// its start. True if the thread may run in real time.
    [[nodiscard]] bool wake(Nanoseconds now, Nanoseconds cpu) {
        left_ = std::min(spec_.budget, left_ + (now - refilled_) / spec_.refill);
        refilled_ = now;
        used_ = cpu;
        if (left_ >= spec_.resume_threshold()) allows_real_time_ = true;
        return allows_real_time_;
    }

    /// Call after work: subtracts the CPU time used since the last wake() or charge(). Once the
    /// budget is spent, returns false and subtracts nothing until a wake() has returned true.
    [[nodiscard]] bool charge(Nanoseconds cpu) {
        if (!allows_real_time_) return false;
        left_ -= cpu - used_;
        used_ = cpu;
        if (left_ <= Nanoseconds::zero()) allows_real_time_ = false;
        return allows_real_time_;
    }

    /// True if the thread may run in real time now.
    [[nodiscard]] bool allows_real_time() const { return allows_real_time_; }

    /// Wall time from the last wake() until wake() would return true. Call only while
    /// allows_real_time() is false.
    [[nodiscard]] Nanoseconds recovery() const {
        return std::max(Nanoseconds::zero(), spec_.resume_threshold() - left_) * spec_.refill;
    }

private:
    Spec spec_{};
    /// CPU time left; at most the budget, negative if the last work took more than was left.
    Nanoseconds left_ = Spec{}.budget;
    Nanoseconds refilled_{};  ///< wall time of the last wake()
    Nanoseconds used_{};      ///< `cpu` of the last wake(), or of the last charge() that subtracted
    bool allows_real_time_ = false;
};

}  // namespace vgpu::softgpu
