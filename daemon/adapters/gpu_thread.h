// SPDX-License-Identifier: MIT
//
// GpuThread: implements GpuRunner with one thread, which runs the loop of one GPU. main.cpp blocks
// SIGTERM, SIGINT and SIGHUP before these threads start, so that only the main loop handles these
// signals.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/wakeup.h"
#include "daemon/ports/gpu_runner.h"

#include <atomic>
#include <thread>

namespace vgpu::daemon::adapters {

/// Any thread may call wake(). stop() interrupts a wait for a PF core that does not answer.
class GpuThread final : public GpuRunner {
public:
    explicit GpuThread(const Clock& clock) : clock_(clock) {}
    ~GpuThread() override { stop(); }
    GpuThread(const GpuThread&) = delete;
    GpuThread& operator=(const GpuThread&) = delete;

    void start(GpuLoop& loop) override;
    void wake() override { wakeup_.raise(); }
    void stop() override;

private:
    void run();
    void wait(PollSet& poll_set) const;

    const Clock& clock_;
    GpuLoop* loop_ = nullptr;
    Wakeup wakeup_;
    std::atomic<bool> is_stopping_ = false;
    std::thread thread_;
};

}  // namespace vgpu::daemon::adapters
