// SPDX-License-Identifier: MIT
//
// HastyThread: the real-time priority of a thread that answers guests, as its Haste allows. It
// sleeps in real time, so that the host's other work cannot keep it from waking, and is a normal
// thread from when its budget is spent until it has refilled. Made and used by that thread.
#pragma once

#include <optional>

#include "pf-driver/softgpu/base/haste.h"
#include "pf-driver/softgpu/base/priority.h"

namespace vgpu::softgpu {

class HastyThread {
public:
    /// More than a worker's: a driver that starts makes thousands of register accesses in a row.
    static constexpr Haste::Spec kAnswers{.budget = std::chrono::milliseconds(5), .refill = 10};

    HastyThread() { woke(); }

    /// First thing after a sleep.
    void woke() { follow(haste_.wake(clock_.now(), thread_time())); }
    /// Last thing before a sleep, and after each piece of work.
    void worked() { follow(haste_.go_on(thread_time())); }
    /// How long it may sleep at most, so that it is in real time again when something comes.
    [[nodiscard]] std::optional<Nanoseconds> longest_sleep() const {
        if (is_real_time_ || !is_allowed_) return std::nullopt;
        return haste_.recovery() + Nanoseconds{1};
    }

private:
    void follow(bool is_hasty) {
        if (is_hasty == is_real_time_ || !is_allowed_) return;
        is_real_time_ = is_hasty;
        if (!is_hasty) return make_normal(pthread_self());
        is_allowed_ = make_real_time(pthread_self(), kRealTime);
        is_real_time_ = is_allowed_;
    }

    SteadyClock clock_;
    Haste haste_{kAnswers};
    bool is_real_time_ = false;
    bool is_allowed_ = true;  ///< nobody has refused it yet
};

}  // namespace vgpu::softgpu
