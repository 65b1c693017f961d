// SPDX-License-Identifier: MIT
//
// Clock: the time of vgpud. In vgpud a Clock reads the clocks of the host
// (adapters/system_clock.h); in tests it is virtual. The times in RUN events of a PF core come from
// the clock of the device, not from a Clock. Any thread may call a Clock.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::daemon {

/// The usual type of times in vgpud. If a time is an integer, its name ends with the unit (`_us`).
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
    /// Wall clock: time since 1970; by default now(). Use it only for display and for the first
    /// reading of the LeaseClock (service/state/lease_clock.h), because the wall clock may jump.
    [[nodiscard]] virtual std::chrono::seconds unix_time() const {
        return std::chrono::duration_cast<std::chrono::seconds>(now());
    }
};

}  // namespace vgpu::daemon
