// SPDX-License-Identifier: MIT
#include "daemon/adapters/gpu_thread.h"

#include "daemon/adapters/event_loop.h"

namespace vgpu::daemon::adapters {

void GpuThread::start(GpuTurns& turns) {
    turns_ = &turns;
    thread_ = std::thread([this] { run(); });
}

void GpuThread::stop() {
    if (!thread_.joinable()) return;
    // In this order: whoever is woken by the other two must find it set.
    is_stopping_ = true;
    turns_->interrupt();
    wakeup_.raise();
    thread_.join();
}

void GpuThread::run() {
    while (!is_stopping_) {
        // Before the turn: a wake() that comes during it leads to another one.
        wakeup_.clear();
        turns_->turn();
        Wanted wanted;
        wanted.watch(wakeup_.fd(), POLLIN);
        for (const int fd : turns_->wait_fds()) wanted.watch(fd, POLLIN);
        wanted.wake_by(turns_->wake_at());
        wait_for(wanted, clock_);
    }
}

}  // namespace vgpu::daemon::adapters
