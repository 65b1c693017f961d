// SPDX-License-Identifier: MIT
//
// ServiceManager: reports readiness, stopping and (with WatchdogSec) watchdog pings to systemd by
// sd_notify(3). Does nothing without NOTIFY_SOCKET. Runs in one thread.
#pragma once

#include "daemon/ports/timed_part.h"

#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

class ServiceManager final : public TimedPart {
public:
    explicit ServiceManager(const Clock& clock);

    /// Longest time until readiness is reported. It is limited, because other units wait for vgpud.
    static constexpr Nanoseconds kLongestStart = std::chrono::seconds(5);

    /// Call in every iteration. Reports readiness once, when `is_settled` or after kLongestStart,
    /// with `status` for systemctl.
    void ready_if(bool is_settled, const std::string& status);
    [[nodiscard]] bool is_ready() const { return !ready_by_; }
    /// Call once, before the shutdown.
    void stopping();
    /// Sends a watchdog ping if one is due. Two are due in each WatchdogSec.
    void step() override;
    /// None if vgpud is ready and has no watchdog.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;

private:
    const Clock& clock_;
    std::optional<Nanoseconds> ready_by_;  ///< time limit of the start; none after READY
    Nanoseconds interval_{0};              ///< time between two watchdog pings
    std::optional<Nanoseconds> next_;  ///< time of the next watchdog ping; none if not requested
};

}  // namespace vgpu::daemon::adapters
