// SPDX-License-Identifier: MIT
//
// ServiceManager reports to systemd by sd_notify(3) that vgpud is ready, that it stops, and, if its
// unit has WatchdogSec, that its main loop still runs. Without NOTIFY_SOCKET it does nothing. Used
// by main.cpp; one thread.
#pragma once

#include "daemon/ports/clock.h"

#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

class ServiceManager {
public:
    /// Reads WATCHDOG_USEC and WATCHDOG_PID, once.
    explicit ServiceManager(const Clock& clock);

    /// Longest time from the constructor to the report of readiness, which other units wait for: a
    /// GPU that never comes must not delay it further.
    static constexpr Nanoseconds kLongestStart = std::chrono::seconds(5);

    /// Call in every turn of the main loop; reports readiness once, with `status` for systemctl.
    void ready_if(bool is_settled, const std::string& status);
    /// True after the report.
    [[nodiscard]] bool is_ready() const { return !ready_by_; }
    /// Call once, before the shutdown begins.
    void stopping();
    /// Call in every turn of the main loop: sends a sign of life, twice in each WatchdogSec.
    void step();
    /// Time of the next report, CLOCK_MONOTONIC; empty once ready and without a watchdog.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

private:
    const Clock& clock_;
    std::optional<Nanoseconds> ready_by_;
    Nanoseconds interval_{0};
    std::optional<Nanoseconds> next_;
};

}  // namespace vgpu::daemon::adapters
