// SPDX-License-Identifier: MIT
//
// Time as vgpud sees it: CLOCK_MONOTONIC and CLOCK_BOOTTIME in the product
// (adapters/system_clock.h), a virtual clock in tests. Device time stamps travel in events and
// never come from here. Callable from any thread.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::daemon {

/// All times and durations of the daemon, unless a name says otherwise (`_us`, `_ms`).
using Nanoseconds = std::chrono::nanoseconds;

class Clock {
public:
    virtual ~Clock() = default;
    /// Time since an arbitrary start; never goes back.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
    /// Since boot, with the time for which the host was suspended. Never goes back within a boot.
    [[nodiscard]] virtual Nanoseconds boot_time() const { return now(); }
    /// Another one with each boot.
    [[nodiscard]] virtual std::string boot_id() const { return ""; }
    /// Wall clock, seconds since 1970, for people. It may jump: nothing is to depend on it. Without
    /// one of its own a clock counts from its start.
    [[nodiscard]] virtual std::chrono::seconds unix_time() const {
        return std::chrono::duration_cast<std::chrono::seconds>(now());
    }
};

}  // namespace vgpu::daemon
