// SPDX-License-Identifier: MIT
//
// Time as vgpud sees it: CLOCK_MONOTONIC in the product (adapters/system_clock.h), a virtual clock
// in tests. Device time stamps travel in events and never come from here. Callable from any thread.
#pragma once

#include <chrono>

namespace vgpu::daemon {

/// All times and durations of the daemon, unless a name says otherwise (`_us`, `_ms`).
using Nanoseconds = std::chrono::nanoseconds;

class Clock {
public:
    virtual ~Clock() = default;
    /// Time since an arbitrary start; never goes back.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
    /// Wall clock, seconds since 1970; for what outlives a reboot. It may jump. Without one of its
    /// own a clock counts from its start.
    [[nodiscard]] virtual std::chrono::seconds unix_time() const {
        return std::chrono::duration_cast<std::chrono::seconds>(now());
    }
};

}  // namespace vgpu::daemon
