// SPDX-License-Identifier: MIT
//
// Clock: the time of vgpud. vgpud reads the clocks of the host (adapters/system_clock.h), and tests
// have a virtual clock. RUN events carry times of the device's clock, which Clock does not read.
// Any thread may call a Clock.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::daemon {

/// The usual type of times in vgpud. The names of times in integers end with the unit (`_us`).
using Nanoseconds = std::chrono::nanoseconds;

class Clock {
public:
    virtual ~Clock() = default;
    /// Time since an arbitrary start; never goes back.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
    /// Time since boot, including suspension of the host. Never goes back within a boot.
    [[nodiscard]] virtual Nanoseconds boot_time() const { return now(); }
    /// A text that differs for each boot; empty if unknown.
    [[nodiscard]] virtual std::string boot_id() const { return ""; }
    /// Wall clock: time since 1970. For display and for the first reading of the LeaseClock
    /// (service/state/lease_clock.h) only, because the wall clock may jump. By default now().
    [[nodiscard]] virtual std::chrono::seconds unix_time() const {
        return std::chrono::duration_cast<std::chrono::seconds>(now());
    }
};

}  // namespace vgpu::daemon
