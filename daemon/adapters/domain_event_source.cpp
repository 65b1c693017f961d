// SPDX-License-Identifier: MIT
#include "daemon/adapters/domain_event_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace vgpu::daemon::adapters {

namespace {

/// Prepares a posix_spawn. vgpud has threads, so it does not fork.
class SpawnPlan {
public:
    SpawnPlan() {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawnattr_init(&attributes_);
        // vgpud blocks the signals that it reads from a descriptor, and a child would inherit that
        sigset_t none;
        ::sigemptyset(&none);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    }
    ~SpawnPlan() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;

    void use(int fd, int as) { ::posix_spawn_file_actions_adddup2(&actions_, fd, as); }
    /// The child's pid, or a negated errno.
    pid_t run(const std::vector<std::string>& command) {
        std::vector<char*> arguments;
        for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
        arguments.push_back(nullptr);
        pid_t pid = -1;
        const int error = ::posix_spawnp(&pid, arguments.front(), &actions_, &attributes_,
                                         arguments.data(), environ);
        return error == 0 ? pid : -error;
    }

private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

/// {read, write}, both closed on exec.
std::pair<UniqueFd, UniqueFd> make_pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

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
    auto [child_input, input] = make_pipe();
    auto [output, child_output] = make_pipe();
    SpawnPlan plan;
    plan.use(child_input.get(), STDIN_FILENO);
    plan.use(child_output.get(), STDOUT_FILENO);
    next_start_ = clock_.now() + delay_;
    delay_ = std::min(delay_ * 2, kLongestDelay);
    if (!child_output.is_open() || !child_input.is_open()) return;
    const pid_t pid = plan.run(command_);
    if (pid < 0) return complain(-pid);
    pid_ = pid;
    reported_ = 0;
    ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
    input_ = std::move(input);
    output_ = std::move(output);
}

/// Reports each reason once.
void DomainEventSource::complain(int code) {
    if (std::exchange(reported_, code) == code) return;
    problem_ = fmt::format(
        "cannot run '{}': {}; vgpud tries again. Install it, or name it in 'programs' of vgpud's "
        "configuration",
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
    // bounds memory for an endless line
    if (text_.size() > kMaxLine) end();
}

void DomainEventSource::end() {
    if (pid_ > 0) {
        // Kill first, because the main loop must not wait for the child.
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
