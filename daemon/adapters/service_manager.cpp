// SPDX-License-Identifier: MIT
#include "daemon/adapters/service_manager.h"

#include <systemd/sd-daemon.h>
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace vgpu::daemon::adapters {

ServiceManager::ServiceManager(const Clock& clock)
    : clock_(clock), ready_by_(clock.now() + kLongestStart) {
    std::uint64_t limit_us = 0;
    if (::sd_watchdog_enabled(0, &limit_us) <= 0) return;
    interval_ = std::chrono::microseconds(limit_us) / 2;
    next_ = clock_.now();
}

void ServiceManager::ready_if(bool is_settled, const std::string& status) {
    if (!ready_by_ || (!is_settled && clock_.now() < *ready_by_)) return;
    ready_by_.reset();
    ::sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void ServiceManager::stopping() {
    ::sd_notify(0, "STOPPING=1");
}

void ServiceManager::step() {
    if (!next_ || clock_.now() < *next_) return;
    ::sd_notify(0, "WATCHDOG=1");
    next_ = clock_.now() + interval_;
}

std::optional<Nanoseconds> ServiceManager::next_step() const {
    if (!ready_by_ || !next_) return ready_by_ ? ready_by_ : next_;
    return std::min(*ready_by_, *next_);
}

}  // namespace vgpu::daemon::adapters
