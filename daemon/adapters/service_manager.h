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

    /// Whoever waits for vgpud (an installation, units after it) is kept until it is settled, but
    /// by a GPU that never comes no longer than this, from the constructor on.
    static constexpr Nanoseconds kLongestStart = std::chrono::seconds(5);

    /// Once in every turn of the main loop; says that vgpud is ready, once. `status` is what
    /// `systemctl status` shows.
    void ready_if(bool is_settled, const std::string& status);
    /// Then ready_if() has nothing more to say.
    [[nodiscard]] bool is_ready() const { return !ready_by_; }
    /// Once, before anything is taken down.
    void stopping();
    /// Once in every turn of the main loop: a sign of life, twice in each WatchdogSec.
    void step();
    /// CLOCK_MONOTONIC; nothing once vgpud is ready and without a watchdog.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

private:
    const Clock& clock_;
    std::optional<Nanoseconds> ready_by_;
    Nanoseconds interval_{0};
    std::optional<Nanoseconds> next_;
};

}  // namespace vgpu::daemon::adapters
