// SPDX-License-Identifier: MIT
//
// Clock: vgpud's time. CLOCK_MONOTONIC and CLOCK_BOOTTIME in vgpud (adapters/system_clock.h), a
// virtual clock in tests. RUN events carry times of the device's clock instead. Any thread may call
// it.
#pragma once

#include <chrono>
#include <string>

namespace vgpu::daemon {

/// All times of the daemon, unless a name says otherwise (`_us`, `_ms`).
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
    /// Wall clock, seconds since 1970, for display only, because it may jump. Default: now().
    [[nodiscard]] virtual std::chrono::seconds unix_time() const {
        return std::chrono::duration_cast<std::chrono::seconds>(now());
    }
};

}  // namespace vgpu::daemon
