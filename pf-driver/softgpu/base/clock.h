// SPDX-License-Identifier: MIT
//
// Clock: the time of the device. Code that uses this time takes a Clock&; tests pass a VirtualClock
// (tests/support/virtual_clock.h), so they need not sleep.
#pragma once

#include <chrono>

namespace vgpu::softgpu {

using Nanoseconds = std::chrono::nanoseconds;

/// Any thread may call now(). Virtual, so that tests control time.
class Clock {
public:
    virtual ~Clock() = default;
    /// Time since an arbitrary start; never goes back.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
};

/// The host's monotonic clock. The clock continues while the guest is stopped.
class SteadyClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override {
        return std::chrono::duration_cast<Nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
    }
};

}  // namespace vgpu::softgpu
