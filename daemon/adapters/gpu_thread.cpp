// SPDX-License-Identifier: MIT
#include "daemon/adapters/gpu_thread.h"

namespace vgpu::daemon::adapters {

void GpuThread::start(GpuTurns& turns) {
    turns_ = &turns;
    thread_ = std::thread([this] { run(); });
}

void GpuThread::stop() {
    if (!thread_.joinable()) return;
    // set first, because the thread must see it when it wakes
    is_stopping_ = true;
    turns_->interrupt();
    wakeup_.raise();
    thread_.join();
}

void GpuThread::run() {
    while (!is_stopping_) {
        // before the turn, so that a wake() during it causes another turn
        wakeup_.clear();
        turns_->turn();
        Wanted wanted;
        wanted.watch(wakeup_.fd(), POLLIN);
        for (const int fd : turns_->wait_fds()) wanted.watch(fd, POLLIN);
        wanted.wake_by(turns_->wake_at());
        wait(wanted);
    }
}

void GpuThread::wait(Wanted& wanted) const {
    static const bool has_cpu_to_spare = std::thread::hardware_concurrency() > 1;
    while (has_cpu_to_spare && clock_.now() < turns_->awake_until()) {
        if (is_ready(wanted)) return;
        std::this_thread::yield();
    }
    wait_for(wanted, clock_);
}

}  // namespace vgpu::daemon::adapters
