// SPDX-License-Identifier: MIT
//
// GpuRunner: gives one GPU its turns, in a thread of its own, so that a PF core that is slow or
// stopped holds up nobody but its own GPU. A turn is taken when an fd becomes readable, when the
// time has come, or after wake(). Implemented by adapters/gpu_thread; tests take the turns
// themselves.
#pragma once

#include "daemon/ports/clock.h"

#include <vector>

namespace vgpu::daemon {

/// What is run. All calls but interrupt() come from the runner's thread.
class GpuTurns {
public:
    virtual ~GpuTurns() = default;

    /// Does everything that is due and returns; may block as long as the PF core takes to answer.
    virtual void turn() = 0;
    /// Readable when there is something to do; -1 entries are to be ignored.
    [[nodiscard]] virtual std::vector<int> wait_fds() const = 0;
    /// Of Clock: the next turn is due then even if no fd becomes readable. Asked anew after each
    /// turn.
    [[nodiscard]] virtual Nanoseconds wake_at() const = 0;
    /// Of Clock: until then another request is likely, and the runner does not sleep, if it has a
    /// CPU to spare: one that sleeps takes as long to wake as a request takes. At most wake_at().
    [[nodiscard]] virtual Nanoseconds awake_until() const = 0;
    /// Any thread: ends the wait of a turn that is under way; no turn will follow.
    virtual void interrupt() = 0;
};

class GpuRunner {
public:
    virtual ~GpuRunner() = default;

    /// Begins with a turn at once. `turns` lives until stop() has returned.
    virtual void start(GpuTurns& turns) = 0;
    /// Any thread: another turn soon.
    virtual void wake() = 0;
    /// No turn is under way afterwards.
    virtual void stop() = 0;
};

}  // namespace vgpu::daemon
