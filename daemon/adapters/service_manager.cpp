// SPDX-License-Identifier: MIT
#include "daemon/adapters/service_manager.h"

#include <systemd/sd-daemon.h>
#include <chrono>
#include <cstdint>

namespace vgpu::daemon::adapters {

ServiceManager::ServiceManager(const Clock& clock) : clock_(clock) {
    std::uint64_t limit_us = 0;
    if (::sd_watchdog_enabled(0, &limit_us) <= 0) return;
    interval_ = std::chrono::microseconds(limit_us) / 2;
    next_ = clock_.now();
}

void ServiceManager::ready(const std::string& status) {
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

}  // namespace vgpu::daemon::adapters
