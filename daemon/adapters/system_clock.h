// SPDX-License-Identifier: MIT
//
// SystemClock: the product's Clock, CLOCK_MONOTONIC, so that time stamps of the PF core's events
// can be compared with it. Made once in main.cpp; callable from any thread.
#pragma once

#include "daemon/ports/clock.h"

namespace vgpu::daemon::adapters {

class SystemClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override {
        return std::chrono::duration_cast<Nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
    }
};

}  // namespace vgpu::daemon::adapters
