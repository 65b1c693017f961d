// SPDX-License-Identifier: MIT
//
// Time as vgpud sees it: CLOCK_MONOTONIC in the product (adapters/system_clock.h), a virtual clock
// in tests. Device time stamps travel in events and never come from here. Callable from any thread.
#pragma once

#include <chrono>

namespace vgpu::daemon {

using Nanoseconds = std::chrono::nanoseconds;

class Clock {
public:
    virtual ~Clock() = default;
    /// Time since an arbitrary start; never goes back.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
};

}  // namespace vgpu::daemon
