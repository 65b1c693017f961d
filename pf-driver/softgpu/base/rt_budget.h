// SPDX-License-Identifier: MIT
//
// RtBudget: the real-time budget of a thread that answers requests. The budget is CPU time that
// refills with wall time. A mostly idle thread almost always has budget left, a busy one almost
// never, and no thread runs in real time for more than 1 / Spec::refill of a CPU over time. Used by
// one thread; the caller sets the priority.
#pragma once

#include <algorithm>

#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu {

class RtBudget {
public:
    /// `budget` and `refill` together bound the real-time CPU time that such a thread takes from
    /// the host.
    struct Spec {
        Nanoseconds budget = std::chrono::milliseconds(1);  ///< full budget: CPU time
        unsigned refill = 20;  ///< wall time that refills one unit of CPU time

        /// The budget that must be left for the thread to return to real time.
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
        if (left_ >= spec_.resume_threshold()) is_on_ = true;
        return is_on_;
    }

    /// Call after work: subtracts the CPU time used since the last wake() or charge(). False once
    /// the budget is spent, until the next wake() that returns true.
    [[nodiscard]] bool charge(Nanoseconds cpu) {
        if (!is_on_) return false;
        left_ -= cpu - used_;
        used_ = cpu;
        if (left_ <= Nanoseconds::zero()) is_on_ = false;
        return is_on_;
    }

    /// True if the thread may run in real time now.
    [[nodiscard]] bool is_on() const { return is_on_; }

    /// Only while is_on() is false: wall time from the last wake() until wake() would return true.
    [[nodiscard]] Nanoseconds recovery() const {
        return std::max(Nanoseconds::zero(), spec_.resume_threshold() - left_) * spec_.refill;
    }

private:
    Spec spec_{};
    /// CPU time left; at most the budget.
    Nanoseconds left_ = Spec{}.budget;
    Nanoseconds refilled_{};  ///< wall time of the last wake()
    Nanoseconds used_{};      ///< CPU time of the thread at the last wake() or charge()
    bool is_on_ = false;
};

}  // namespace vgpu::softgpu
