// SPDX-License-Identifier: MIT
//
// DomainEventSource: runs vgpu-libvirt (daemon/libvirt) as a child, and reads its lines, which
// report libvirt's domains. If the child ends, restarts it after a growing delay. If vgpud ends,
// the child reads end of file from its standard input, and ends as well. Reading never blocks. If
// an incomplete line grows longer than kMaxLine, DomainEventSource kills the child. main.cpp calls
// watch() before each wait and dispatch() after it, in one thread.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::adapters {

/// Does not parse the lines; service/owners/domains.h does.
class DomainEventSource {
public:
    /// First delay from the end of the child, or from a failed start, to the next start. Each start
    /// doubles the delay; a received line resets the delay to this value.
    static constexpr Nanoseconds kFirstDelay = std::chrono::seconds(1);
    /// Upper limit of the delay.
    static constexpr Nanoseconds kLongestDelay = std::chrono::minutes(5);
    static constexpr std::size_t kMaxLine = 1u << 20;  ///< in bytes

    /// `command`: program (searched in PATH) and arguments; empty: no child is started.
    DomainEventSource(std::vector<std::string> command, const Clock& clock);
    ~DomainEventSource();
    DomainEventSource(const DomainEventSource&) = delete;
    DomainEventSource& operator=(const DomainEventSource&) = delete;

    void watch(PollSet& poll_set);
    /// Reads the child's available output. If no child runs and the delay is over, starts a child.
    void dispatch(const PollSet& poll_set);

    /// The whole lines that have arrived since the last call.
    std::vector<std::string> take_lines();
    /// Why a start of the child failed; empty if there is no new reason since the last call.
    std::string take_problem();
    /// True once after the child has ended. The domains may then differ from its earlier lines.
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
    std::optional<std::size_t> watched_at_;  ///< index of output_ in PollSet::fds; none: not there
    std::string text_;                       ///< received part of a line that is not complete
    std::vector<std::string> lines_;
    std::string problem_;
    int reported_errno_ = 0;  ///< errno of the last failed start; 0 after a success
    bool is_lost_ = false;
    Nanoseconds next_start_{0};
    Nanoseconds delay_ = kFirstDelay;
};

}  // namespace vgpu::daemon::adapters
