// SPDX-License-Identifier: MIT
//
// SystemClock implements Clock with the clocks of the system: CLOCK_MONOTONIC, which can be
// compared with time stamps of the PF core's events, CLOCK_BOOTTIME for leases, and CLOCK_REALTIME
// for people. Made once in main.cpp; callable from any thread.
#pragma once

#include "daemon/ports/clock.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <string>

namespace vgpu::daemon::adapters {

class SystemClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override {
        return std::chrono::duration_cast<Nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
    }
    [[nodiscard]] Nanoseconds boot_time() const override {
        timespec time{};
        ::clock_gettime(CLOCK_BOOTTIME, &time);
        return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
    }
    [[nodiscard]] std::string boot_id() const override {
        std::string id;
        std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
        return id;
    }
    [[nodiscard]] std::chrono::seconds unix_time() const override {
        return std::chrono::duration_cast<std::chrono::seconds>(
            std::chrono::system_clock::now().time_since_epoch());
    }
};

}  // namespace vgpu::daemon::adapters
