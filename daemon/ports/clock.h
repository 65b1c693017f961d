// SPDX-License-Identifier: MIT
//
// Clock is vgpud's source of time: CLOCK_MONOTONIC and CLOCK_BOOTTIME in the product
// (adapters/system_clock.h), a virtual clock in tests. Device time stamps come in events, never
// from here. Callable from any thread.
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
    /// Time since boot, including suspension of the host. Never goes back within a boot.
    [[nodiscard]] virtual Nanoseconds boot_time() const { return now(); }
    /// Differs for each boot.
    [[nodiscard]] virtual std::string boot_id() const { return ""; }
    /// Wall clock, seconds since 1970, for people. It may jump: nothing may depend on it. The
    /// default counts from the clock's start.
    [[nodiscard]] virtual std::chrono::seconds unix_time() const {
        return std::chrono::duration_cast<std::chrono::seconds>(now());
    }
};

}  // namespace vgpu::daemon
