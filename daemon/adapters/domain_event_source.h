// SPDX-License-Identifier: MIT
//
// DomainEventSource: runs vgpu-libvirt and reads its lines. Restarts it with a growing delay. The
// child ends when vgpud ends, because its standard input then ends. Reading never blocks. A line
// longer than kMaxLine ends the child. main.cpp calls watch() before each wait and dispatch() after
// it, in one thread.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::adapters {

/// The lines are parsed by service/owners/domains.h.
class DomainEventSource {
public:
    /// Delay from the end of the child, or from a start that failed, to the next start. Doubles
    /// with each start; a received line resets it.
    static constexpr Nanoseconds kFirstDelay = std::chrono::seconds(1);
    static constexpr Nanoseconds kLongestDelay = std::chrono::minutes(5);
    static constexpr std::size_t kMaxLine = 1u << 20;

    /// `command`: program (searched in PATH) and arguments; if empty, nothing is run.
    DomainEventSource(std::vector<std::string> command, const Clock& clock);
    ~DomainEventSource();
    DomainEventSource(const DomainEventSource&) = delete;
    DomainEventSource& operator=(const DomainEventSource&) = delete;

    void watch(PollSet& poll_set);
    /// Reads available output; starts the child if due.
    void dispatch(const PollSet& poll_set);

    /// Whole lines since the last call.
    std::vector<std::string> take_lines();
    /// Why the child cannot be started, returned once; else empty.
    std::string take_problem();
    /// True once after the child has ended; its earlier lines may then be outdated.
    bool take_loss();
    [[nodiscard]] bool is_running() const { return pid_ > 0; }

private:
    void start();
    void complain(int code);
    void read();
    void end();

    std::vector<std::string> command_;
    const Clock& clock_;
    pid_t pid_ = -1;
    UniqueFd input_;   ///< the child's standard input; closing it ends the child
    UniqueFd output_;  ///< the child's standard output
    std::optional<std::size_t> watched_at_;  ///< in PollSet::fds
    std::string text_;                       ///< incomplete line
    std::vector<std::string> lines_;
    std::string problem_;
    int reported_ = 0;  ///< errno of the last complaint
    bool is_lost_ = false;
    Nanoseconds next_start_{0};
    Nanoseconds delay_ = kFirstDelay;
};

}  // namespace vgpu::daemon::adapters
