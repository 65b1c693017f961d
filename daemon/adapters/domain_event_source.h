// SPDX-License-Identifier: MIT
//
// DomainEventSource: runs vgpu-libvirt as a child and reads its lines. Restarts the child with a
// growing delay. The child ends when vgpud ends, because the child's standard input then ends.
// Reading never blocks. A line longer than kMaxLine ends the child. main.cpp calls watch() before
// each wait and dispatch() after it, in one thread.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::adapters {

/// service/owners/domains.h parses the lines.
class DomainEventSource {
public:
    /// First delay from the end of the child, or from a start that failed, to the next start. The
    /// delay doubles with each start; a received line resets it.
    static constexpr Nanoseconds kFirstDelay = std::chrono::seconds(1);
    /// The delay does not grow beyond this limit.
    static constexpr Nanoseconds kLongestDelay = std::chrono::minutes(5);
    static constexpr std::size_t kMaxLine = 1u << 20;  ///< in bytes

    /// `command`: program (searched in PATH) and arguments; if empty, nothing is run.
    DomainEventSource(std::vector<std::string> command, const Clock& clock);
    ~DomainEventSource();
    DomainEventSource(const DomainEventSource&) = delete;
    DomainEventSource& operator=(const DomainEventSource&) = delete;

    void watch(PollSet& poll_set);
    /// Reads available output; starts the child if due.
    void dispatch(const PollSet& poll_set);

    /// The whole lines that have arrived since the last call.
    std::vector<std::string> take_lines();
    /// Why the last start of the child failed; empty if the start succeeded, or if an earlier call
    /// has returned the reason.
    std::string take_problem();
    /// True once after the child has ended; its earlier lines may then be outdated.
    bool take_loss();
    [[nodiscard]] bool is_running() const { return pid_ > 0; }

private:
    void start();
    void record_failed_start(int code);
    void read();
    void end();

    std::vector<std::string> command_;
    const Clock& clock_;
    pid_t pid_ = -1;
    UniqueFd input_;   ///< the child's standard input; closing it ends the child
    UniqueFd output_;  ///< the child's standard output
    std::optional<std::size_t> watched_at_;  ///< index of output_ in PollSet::fds
    std::string text_;                       ///< the last line, if it is incomplete
    std::vector<std::string> lines_;
    std::string problem_;
    int reported_errno_ = 0;  ///< errno of the last failed start; 0 after a success
    bool is_lost_ = false;
    Nanoseconds next_start_{0};
    Nanoseconds delay_ = kFirstDelay;
};

}  // namespace vgpu::daemon::adapters
