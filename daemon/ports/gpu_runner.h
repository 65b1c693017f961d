// SPDX-License-Identifier: MIT
//
// GpuRunner: runs the loop of one GPU in a separate thread, so that a slow PF core delays only its
// own GPU. After the first iteration, an iteration runs when one of wait_fds() becomes readable, at
// wake_at(), or after wake(). Implemented by adapters/gpu_thread; tests call iterate() themselves.
#pragma once

#include "daemon/ports/clock.h"

#include <vector>

namespace vgpu::daemon {

/// The work of one GPU. The runner's thread makes all calls except interrupt().
class GpuLoop {
public:
    virtual ~GpuLoop() = default;

    /// Does all work that is due; may block until the PF core answers.
    virtual void iterate() = 0;
    /// Fds that become readable when there is work; ignore entries of -1.
    [[nodiscard]] virtual std::vector<int> wait_fds() const = 0;
    /// Time (of Clock) of the next iteration, unless a descriptor or wake() causes an earlier one.
    /// Called after each iteration.
    [[nodiscard]] virtual Nanoseconds wake_at() const = 0;
    /// Time (of Clock, at most wake_at()) until which another request is likely. Until then the
    /// runner polls without sleep if the host has more than one CPU, because a wake-up takes as
    /// long as a request.
    [[nodiscard]] virtual Nanoseconds awake_until() const = 0;
    /// Ends a wait for the PF core in the running iteration, and prevents later waits for the PF
    /// core. Any thread may call interrupt().
    virtual void interrupt() = 0;
};

class GpuRunner {
public:
    virtual ~GpuRunner() = default;

    /// Runs the first iteration at once. `loop` must live until stop() has returned.
    virtual void start(GpuLoop& loop) = 0;
    /// Requests another iteration soon. Any thread may call wake().
    virtual void wake() = 0;
    /// Ends the loop; no iteration is running when stop() returns.
    virtual void stop() = 0;
};

}  // namespace vgpu::daemon
