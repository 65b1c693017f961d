// SPDX-License-Identifier: MIT
//
// How long a thread that answers may run before the host's other work: a budget of CPU time that
// refills with wall time. Who sleeps nearly always is always in haste, who computes nearly never,
// and nobody can take more of a CPU than 1 / Spec::refill. Used by one thread; sets no priority
// itself.
#pragma once

#include <algorithm>

#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu {

class Haste {
public:
    /// Both together bound what such a thread can take from the host.
    struct Spec {
        Nanoseconds budget = std::chrono::milliseconds(1);  ///< CPU time at a stretch
        unsigned refill = 20;                               ///< wall time per CPU time

        /// Less is not worth a change of priority.
        [[nodiscard]] Nanoseconds crumbs() const { return budget / 4; }
    };

    Haste() = default;
    explicit Haste(const Spec& spec) : spec_(spec), left_(spec.budget) {}

    /// The thread has woken; `now` is wall time, `cpu` the CPU time it has used in its life.
    [[nodiscard]] bool wake(Nanoseconds now, Nanoseconds cpu) {
        left_ = std::min(spec_.budget, left_ + (now - refilled_) / spec_.refill);
        refilled_ = now;
        used_ = cpu;
        if (left_ >= spec_.crumbs()) is_on_ = true;
        return is_on_;
    }

    /// The thread has worked; false from then on where the budget is spent.
    [[nodiscard]] bool go_on(Nanoseconds cpu) {
        if (!is_on_) return false;
        left_ -= cpu - used_;
        used_ = cpu;
        if (left_ <= Nanoseconds::zero()) is_on_ = false;
        return is_on_;
    }

    /// May run before others now.
    [[nodiscard]] bool is_on() const { return is_on_; }

    /// From the last wake() on, until one says true; zero: it would now.
    [[nodiscard]] Nanoseconds recovery() const {
        return std::max(Nanoseconds::zero(), spec_.crumbs() - left_) * spec_.refill;
    }

private:
    Spec spec_{};
    /// CPU time; never above the budget.
    Nanoseconds left_ = Spec{}.budget;
    Nanoseconds refilled_{};
    Nanoseconds used_{};
    bool is_on_ = false;
};

}  // namespace vgpu::softgpu
