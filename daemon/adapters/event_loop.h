// SPDX-License-Identifier: MIT
//
// The event loop of the main thread and of each GPU's. Before each wait it asks for the fds to
// watch and the time of the next thing to do; after it, everything is given a turn. Nothing is
// registered, so nothing can be stale: a connection that is gone is simply not asked for (agents'
// sockets, of which there are hundreds, are behind an epoll of their own). Used by
// main.cpp and GpuThread.
#pragma once

#include "daemon/ports/clock.h"

#include <poll.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::adapters {

/// What a part of the daemon waits for.
/// Made anew for every wait. Indexes into `fds` are good until it is dropped.
struct Wanted {
    std::vector<pollfd> fds;
    std::optional<Nanoseconds> wake_at;  ///< CLOCK_MONOTONIC

    /// Does nothing for -1: parts that have no fd now need not ask.
    void watch(int fd, short events);
    /// The earliest of all counts.
    void wake_by(Nanoseconds at);
    /// Whether wait_for() found something at `fd`.
    [[nodiscard]] bool has_come(int fd) const;
};

/// True if one of the fds is ready now.
bool is_ready(Wanted& wanted);
/// Sleeps until one of the fds is ready or the time has come.
/// Fills in `revents`. Also returns early (a signal): callers look at what is due, not at why.
void wait_for(Wanted& wanted, const Clock& clock);

}  // namespace vgpu::daemon::adapters
