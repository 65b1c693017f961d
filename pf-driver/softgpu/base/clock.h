// SPDX-License-Identifier: MIT
//
// Clock: the time source of the GPU model. Code takes a Clock& for times that a guest or the PF can
// see, so that tests can pass a VirtualClock (tests/support/virtual_clock.h) and need not sleep.
#pragma once

#include <chrono>

namespace vgpu::softgpu {

using Nanoseconds = std::chrono::nanoseconds;

/// Any thread may call now().
class Clock {
public:
    virtual ~Clock() = default;
    /// Time since an arbitrary start; never decreases.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
};

/// The host's monotonic clock; it advances even while a guest is stopped.
class SteadyClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override {
        return std::chrono::duration_cast<Nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
    }
};

}  // namespace vgpu::softgpu
