// SPDX-License-Identifier: MIT
//
// The event loop of the main thread and of each GPU's. Before each wait it asks for the fds to
// watch and the time of the next thing to do; after it, everything is given a turn. Nothing is
// registered, so nothing can be stale: a connection that is gone is simply not asked for. Used by
// main.cpp and GpuThread.
#pragma once

#include "daemon/ports/clock.h"

#include <poll.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::adapters {

/// What a part of the daemon waits for.
struct Wanted {
    std::vector<pollfd> fds;
    std::optional<Nanoseconds> wake_at;  ///< CLOCK_MONOTONIC

    void watch(int fd, short events);
    void wake_by(Nanoseconds at);
};

/// Sleeps until one of the fds is ready or the time has come.
void wait_for(Wanted& wanted, const Clock& clock);

}  // namespace vgpu::daemon::adapters
