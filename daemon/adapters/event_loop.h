// SPDX-License-Identifier: MIT
//
// PollSet and wait_for(): how the event loops of vgpud wait. The main thread and each GPU thread
// run such a loop. Before each wait, all parts of the loop add their descriptors and times to a new
// PollSet, so that no entry can be stale. After the wait, each part does its work.
#pragma once

#include "daemon/ports/clock.h"

#include <poll.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::adapters {

/// Descriptors and time of one wait. No entry of `fds` moves, so a part may keep its index until
/// the wait is over.
struct PollSet {
    std::vector<pollfd> fds;
    std::optional<Nanoseconds> wake_at;  ///< CLOCK_MONOTONIC

    /// Adds a descriptor; ignores -1.
    void watch(int fd, short events);
    /// Adds a time at which the wait must end; the earliest one counts.
    void wake_by(Nanoseconds at);
    /// True if wait_for() has found `fd` ready.
    [[nodiscard]] bool is_ready(int fd) const;
};

/// True if one of the fds is ready now. Sets `revents` as wait_for() does.
bool is_ready(PollSet& poll_set);
/// Sleeps until an fd is ready, wake_at is reached or a signal arrives. Sets `revents`.
void wait_for(PollSet& poll_set, const Clock& clock);

}  // namespace vgpu::daemon::adapters
