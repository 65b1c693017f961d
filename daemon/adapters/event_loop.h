// SPDX-License-Identifier: MIT
//
// PollSet and wait_for(): how the event loops of vgpud and vgpu-exporter wait. In vgpud, the main
// thread and each GPU thread run such a loop. Before each wait, all parts of the loop add their
// descriptors and times to a new PollSet, so that no entry is out of date. After the wait, each
// part does its work.
#pragma once

#include "daemon/ports/clock.h"

#include <poll.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::adapters {

/// Descriptors and time of one wait. Entries of `fds` keep their index, so a part may use the index
/// of its entry after the wait.
struct PollSet {
    std::vector<pollfd> fds;
    std::optional<Nanoseconds> wake_at;  ///< end of the wait (CLOCK_MONOTONIC); none: no limit

    /// Adds a descriptor with the `events` of poll(2); ignores -1.
    void watch(int fd, short events);
    /// Adds a time at which the wait must end; the earliest one counts.
    void wake_by(Nanoseconds at);
    /// True if the last wait_for() or is_ready(poll_set) found `fd` ready.
    [[nodiscard]] bool is_ready(int fd) const;
};

/// True if one of the fds is ready now. Sets `revents` as wait_for() does.
bool is_ready(PollSet& poll_set);
/// Sleeps until an fd is ready, wake_at is reached or a signal arrives. Sets `revents`.
void wait_for(PollSet& poll_set, const Clock& clock);

}  // namespace vgpu::daemon::adapters
