// SPDX-License-Identifier: MIT
#include "daemon/adapters/gpu_thread.h"

namespace vgpu::daemon::adapters {

void GpuThread::start(GpuLoop& loop) {
    loop_ = &loop;
    thread_ = std::thread([this] { run(); });
}

void GpuThread::stop() {
    if (!thread_.joinable()) return;
    // set before the wake-up, because the woken thread reads is_stopping_
    is_stopping_ = true;
    loop_->interrupt();
    wakeup_.raise();
    thread_.join();
}

void GpuThread::run() {
    while (true) {
        // clear wakeup_ first, so that neither a wake() during iterate() nor a stop() is lost
        wakeup_.clear();
        if (is_stopping_) return;
        loop_->iterate();
        PollSet poll_set;
        poll_set.watch(wakeup_.fd(), POLLIN);
        for (const int fd : loop_->wait_fds()) poll_set.watch(fd, POLLIN);
        poll_set.wake_by(loop_->wake_at());
        wait(poll_set);
    }
}

/// Polls without sleep until awake_until() if the host has more than one CPU, and then sleeps.
void GpuThread::wait(PollSet& poll_set) const {
    static const bool has_cpu_to_spare = std::thread::hardware_concurrency() > 1;
    while (has_cpu_to_spare && clock_.now() < loop_->awake_until()) {
        if (is_ready(poll_set)) return;
        std::this_thread::yield();
    }
    wait_for(poll_set, clock_);
}

}  // namespace vgpu::daemon::adapters
