// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/main_loop.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>

namespace vgpu::kubernetes {

void log_line(const std::string& line) {
    fmt::print(stderr, "vgpu-dra: {}\n", line);
}

void MainLoop::resync() {
    is_resync_wanted_ = true;
    wakeup_.raise();
}

void MainLoop::stop() {
    is_stopping_ = true;
    wakeup_.raise();
}

/// Logs a failure once, even if it lasts. `failure`: empty after a success.
void MainLoop::log_change(const std::string& failure) {
    if (failure != failure_) log_line(failure.empty() ? "all is well again" : failure);
    failure_ = failure;
}

void MainLoop::run() {
    using std::chrono::milliseconds;
    using Clock = std::chrono::steady_clock;
    milliseconds retry = kMinRetry;
    auto resync_at = Clock::now() + kResync;
    while (!is_stopping_) {
        const bool is_watching = watch_.connect();
        const bool is_resync = is_resync_wanted_.exchange(false);
        if (is_resync) resync_at = Clock::now() + kResync;
        const auto done = pass_(is_resync ? Extent::Everything : Extent::Changes);
        log_change(done ? "" : done.error().cause);
        if (!done && is_resync) is_resync_wanted_ = true;
        const bool is_well = done && is_watching;
        const auto to_resync = std::chrono::ceil<milliseconds>(resync_at - Clock::now());
        watch_.wait(wakeup_.fd(), is_well ? std::max(to_resync, milliseconds(0)) : retry);
        wakeup_.clear();
        if (Clock::now() >= resync_at) is_resync_wanted_ = true;
        retry = is_well ? milliseconds(kMinRetry) : std::min<milliseconds>(2 * retry, kMaxRetry);
    }
}

}  // namespace vgpu::kubernetes
