// SPDX-License-Identifier: MIT
//
// ServiceManager: what vgpud tells systemd by sd_notify(3): that it is ready, that it stops, and,
// if its unit has WatchdogSec, that its main loop still turns. Without NOTIFY_SOCKET nobody is
// told. Used by main.cpp; one thread.
#pragma once

#include "daemon/ports/clock.h"

#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

class ServiceManager {
public:
    /// Reads WATCHDOG_USEC and WATCHDOG_PID, once.
    explicit ServiceManager(const Clock& clock);

    /// `status` is what `systemctl status` shows.
    void ready(const std::string& status);
    /// Once, before anything is taken down.
    void stopping();
    /// Once in every turn of the main loop: a sign of life, twice in each WatchdogSec.
    void step();
    /// CLOCK_MONOTONIC; nothing without a watchdog.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const { return next_; }

private:
    const Clock& clock_;
    Nanoseconds interval_{0};
    std::optional<Nanoseconds> next_;
};

}  // namespace vgpu::daemon::adapters
