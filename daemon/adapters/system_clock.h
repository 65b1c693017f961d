// SPDX-License-Identifier: MIT
//
// SystemClock: the product's Clock, CLOCK_MONOTONIC, so that time stamps of the PF core's events
// can be compared with it, and CLOCK_REALTIME for what is written down. Made once in main.cpp;
// callable from any thread.
#pragma once

#include "daemon/ports/clock.h"

namespace vgpu::daemon::adapters {

class SystemClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override {
        return std::chrono::duration_cast<Nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
    }
    [[nodiscard]] std::chrono::seconds unix_time() const override {
        return std::chrono::duration_cast<std::chrono::seconds>(
            std::chrono::system_clock::now().time_since_epoch());
    }
};

}  // namespace vgpu::daemon::adapters
