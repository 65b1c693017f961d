// SPDX-License-Identifier: MIT
//
// GpuThread: GpuRunner as a thread. Signals are blocked in it (main.cpp blocked them before), so
// they reach the main loop only. One per GPU; main.cpp makes them.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/wakeup.h"
#include "daemon/ports/gpu_runner.h"

#include <atomic>
#include <thread>

namespace vgpu::daemon::adapters {

/// start() and stop() from the main loop, wake() from any thread. A turn that is under way when
/// stop() comes is ended by GpuTurns::interrupt(), so stop() does not wait for a PF core that is
/// silent.
class GpuThread final : public GpuRunner {
public:
    explicit GpuThread(const Clock& clock) : clock_(clock) {}
    ~GpuThread() override { stop(); }
    GpuThread(const GpuThread&) = delete;
    GpuThread& operator=(const GpuThread&) = delete;

    void start(GpuTurns& turns) override;
    void wake() override { wakeup_.raise(); }
    void stop() override;

private:
    void run();
    void wait(Wanted& wanted) const;

    const Clock& clock_;
    GpuTurns* turns_ = nullptr;
    Wakeup wakeup_;
    std::atomic<bool> is_stopping_ = false;
    std::thread thread_;
};

}  // namespace vgpu::daemon::adapters
