// SPDX-License-Identifier: MIT
//
// SystemClock: implements Clock. now() reads CLOCK_MONOTONIC, the clock of the PF core's events
// except RUN. boot_time() reads CLOCK_BOOTTIME, for leases. unix_time() reads CLOCK_REALTIME. Any
// thread may call a SystemClock.
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
