// SPDX-License-Identifier: MIT
//
// The wait of the event loops: of the main thread and of each GPU's thread. Before each wait the
// parts add their fds and the time of their next work; after it, each part gets a turn. Nothing
// stays registered, so nothing can be stale: a closed connection is just not added again. (The
// hundreds of agents' sockets are behind one epoll.) Used by main.cpp and GpuThread.
#pragma once

#include "daemon/ports/clock.h"

#include <poll.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::adapters {

/// The fds and the time for which a thread waits.
/// A new one is made for every wait. Indexes into `fds` are valid as long as it exists.
struct Wanted {
    std::vector<pollfd> fds;
    std::optional<Nanoseconds> wake_at;  ///< CLOCK_MONOTONIC

    /// Ignores -1, for parts that have no fd at the moment.
    void watch(int fd, short events);
    /// The earliest time of all calls counts.
    void wake_by(Nanoseconds at);
    /// True if wait_for() found `fd` ready.
    [[nodiscard]] bool has_come(int fd) const;
};

/// True if one of the fds is ready now.
bool is_ready(Wanted& wanted);
/// Sleeps until one of the fds is ready or the time has come. Fills in `revents`.
/// May return early (a signal): callers must check what is due, not why it returned.
void wait_for(Wanted& wanted, const Clock& clock);

}  // namespace vgpu::daemon::adapters
