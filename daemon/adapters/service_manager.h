// SPDX-License-Identifier: MIT
//
// ServiceManager: reports readiness and stopping to systemd, and, with WatchdogSec=, sends watchdog
// pings (sd_notify(3)). Sends nothing without NOTIFY_SOCKET. Used in the main loop only.
#pragma once

#include "daemon/ports/timed_part.h"

#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

class ServiceManager final : public TimedPart {
public:
    explicit ServiceManager(const Clock& clock);

    /// Readiness is reported after this time at the latest, because other units wait for vgpud.
    static constexpr Nanoseconds kLongestStart = std::chrono::seconds(5);

    /// Call in every iteration until is_ready(). Reports readiness once, if `is_settled` or after
    /// kLongestStart, with `status` for systemctl.
    void ready_if(bool is_settled, const std::string& status);
    /// True if readiness was reported.
    [[nodiscard]] bool is_ready() const { return !ready_by_; }
    /// Call once, before the shutdown.
    void stopping();
    /// Sends a watchdog ping if one is due. The interval is half of WatchdogSec=.
    void step() override;
    /// None if readiness was reported and vgpud has no watchdog.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;

private:
    const Clock& clock_;
    std::optional<Nanoseconds> ready_by_;  ///< time limit of the start; none after READY
    Nanoseconds interval_{0};              ///< time between two watchdog pings
    std::optional<Nanoseconds> next_;      ///< time of the next ping; none without WatchdogSec=
};

}  // namespace vgpu::daemon::adapters
