// SPDX-License-Identifier: MIT
//
// DomainFeed: vgpu-libvirt as a child process, and the lines it prints. It is started when it is
// wanted, again with a growing delay when it has ended, and ends with vgpud, since its standard
// input does. Reading never blocks; a line longer than kMostLine ends the child. main.cpp lets it
// watch before each wait and look after it; one thread.
#pragma once

#include "daemon/adapters/event_loop.h"
#include "daemon/adapters/unique_fd.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::adapters {

/// What the child says is taken line by line and not understood here (service/domains.h).
class DomainFeed {
public:
    /// Between two starts, doubled in between; a line that arrives makes it the first again.
    static constexpr Nanoseconds kFirstDelay = std::chrono::seconds(1);
    static constexpr Nanoseconds kLongestDelay = std::chrono::minutes(5);
    static constexpr std::size_t kMostLine = 1u << 20;

    /// `command`: program, looked for in PATH, and arguments; empty: nothing is started.
    DomainFeed(std::vector<std::string> command, const Clock& clock);
    ~DomainFeed();
    DomainFeed(const DomainFeed&) = delete;
    DomainFeed& operator=(const DomainFeed&) = delete;

    void watch(Wanted& wanted);
    /// Reads if it is ready, starts what is due.
    void look(const Wanted& wanted);

    /// Whole lines since the last call.
    std::vector<std::string> take_lines();
    /// Why the child cannot be started, told once; else empty.
    std::string take_problem();
    /// True once after the child has ended: what it said may be out of date.
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
    UniqueFd input_;                         ///< of the child; open as long as vgpud lives
    UniqueFd output_;                        ///< of the child
    std::optional<std::size_t> watched_at_;  ///< in Wanted::fds
    std::string text_;                       ///< the beginning of a line
    std::vector<std::string> lines_;
    std::string problem_;
    int told_ = 0;  ///< errno
    bool is_lost_ = false;
    Nanoseconds next_start_{0};
    Nanoseconds delay_ = kFirstDelay;
};

}  // namespace vgpu::daemon::adapters
