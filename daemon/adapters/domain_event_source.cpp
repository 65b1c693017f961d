// SPDX-License-Identifier: MIT
#include "daemon/adapters/domain_event_source.h"

#include "text/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace vgpu::daemon::adapters {

DomainEventSource::DomainEventSource(std::vector<std::string> command, const Clock& clock)
    : command_(std::move(command)), clock_(clock) {}

DomainEventSource::~DomainEventSource() {
    end();
}

void DomainEventSource::watch(PollSet& poll_set) {
    watched_at_.reset();
    if (command_.empty()) return;
    if (!output_.is_open()) return poll_set.wake_by(next_start_);
    watched_at_ = poll_set.fds.size();
    poll_set.watch(output_.get(), POLLIN);
}

void DomainEventSource::dispatch(const PollSet& poll_set) {
    if (command_.empty()) return;
    if (!output_.is_open()) {
        if (clock_.now() >= next_start_) start();
        return;
    }
    if (watched_at_ && poll_set.fds.at(*watched_at_).revents != 0) read();
}

void DomainEventSource::start() {
    text::Pipe input, output;
    next_start_ = clock_.now() + delay_;
    delay_ = std::min(delay_ * 2, kLongestDelay);
    if (input.reader() < 0 || output.reader() < 0) return;
    const pid_t pid = text::start_child({.command = command_,
                                         .input = input.reader(),
                                         .output = output.writer(),
                                         .errors = STDERR_FILENO});
    if (pid < 0) return record_failed_start(-pid);
    pid_ = pid;
    reported_errno_ = 0;
    input_ = UniqueFd(input.take_writer());
    output_ = UniqueFd(output.take_reader());
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
}

/// Records the errno `code` of a failed start for take_problem(), unless the last start failed with
/// the same errno.
void DomainEventSource::record_failed_start(int code) {
    if (std::exchange(reported_errno_, code) == code) return;
    problem_ = fmt::format(
        "cannot run '{}': {}; vgpud tries again. Install this program, or name it in 'programs' "
        "of vgpud's configuration",
        command_.front(), std::strerror(code));
}

void DomainEventSource::read() {
    constexpr std::size_t kBytesPerIteration = 65'536;
    std::array<char, kBytesPerIteration> bytes{};
    const ssize_t got = ::read(output_.get(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end();
    text_.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t end_of_line = text_.find('\n'); end_of_line != std::string::npos;
         end_of_line = text_.find('\n')) {
        lines_.push_back(text_.substr(0, end_of_line));
        text_.erase(0, end_of_line + 1);
        delay_ = kFirstDelay;
    }
    // End the child, because a line that never ends would use up the memory.
    if (text_.size() > kMaxLine) end();
}

void DomainEventSource::end() {
    if (pid_ > 0) {
        // Without the kill, waitpid() would block the main loop until the child ends by itself.
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        is_lost_ = true;
        next_start_ = clock_.now() + delay_;
    }
    pid_ = -1;
    input_.reset();
    output_.reset();
    text_.clear();
}

std::vector<std::string> DomainEventSource::take_lines() {
    return std::exchange(lines_, {});
}

std::string DomainEventSource::take_problem() {
    return std::exchange(problem_, {});
}

bool DomainEventSource::take_loss() {
    return std::exchange(is_lost_, false);
}

}  // namespace vgpu::daemon::adapters
