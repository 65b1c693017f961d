// SPDX-License-Identifier: MIT
//
// PollSet and wait_for(): the wait of the event loops (main thread, GPU threads). Before each wait
// all parts add their descriptors and times again, so none can be stale. After the wait each part
// does its work.
#pragma once

#include "daemon/ports/clock.h"

#include <poll.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::adapters {

/// Descriptors and time of one wait. Indexes into `fds` are valid while the object exists.
struct PollSet {
    std::vector<pollfd> fds;
    std::optional<Nanoseconds> wake_at;  ///< CLOCK_MONOTONIC

    /// Adds a descriptor; ignores -1.
    void watch(int fd, short events);
    /// Adds a time at which the wait must end; the earliest one counts.
    void wake_by(Nanoseconds at);
    /// True if wait_for() found `fd` ready.
    [[nodiscard]] bool is_ready(int fd) const;
};

/// True if one of the fds is ready now.
bool is_ready(PollSet& poll_set);
/// Sleeps until an fd is ready or wake_at is reached, and sets `revents`. May return early.
void wait_for(PollSet& poll_set, const Clock& clock);

}  // namespace vgpu::daemon::adapters
