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

/// Logs a failure once, however long it lasts.
void MainLoop::log_change(const std::string& failure) {
    if (failure != failure_) log_line(failure.empty() ? "all is well again" : failure);
    failure_ = failure;
}

void MainLoop::run() {
    using std::chrono::milliseconds;
    auto retry = kMinRetry;
    while (!is_stopping_) {
        const bool is_watching = watch_.connect();
        const bool is_resync = is_resync_wanted_.exchange(false);
        const auto done = pass_(is_resync ? Extent::Everything : Extent::Changes);
        log_change(done ? "" : done.error().cause);
        if (!done && is_resync) is_resync_wanted_ = true;
        const bool is_well = done && is_watching;
        const bool has_timed_out =
            !watch_.wait(wakeup_.fd(), is_well ? milliseconds(kResync) : milliseconds(retry));
        wakeup_.clear();
        if (is_well && has_timed_out) is_resync_wanted_ = true;
        retry = is_well ? kMinRetry : std::min(2 * retry, kMaxRetry);
    }
}

}  // namespace vgpu::kubernetes
