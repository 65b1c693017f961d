// SPDX-License-Identifier: MIT
#include "vf-agent/child_task.h"

#include "text/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

namespace vgpu::agent {

namespace {

constexpr std::size_t kMaxText = 400;  // bytes of output to keep

}  // namespace

ChildTask::ChildTask(std::vector<std::string> command, Nanoseconds deadline) : deadline_(deadline) {
    text::Pipe pipe;
    pid_ =
        text::start_child({.command = std::move(command),
                           .output = pipe.writer(),
                           .errors = STDERR_FILENO,
                           .has_own_group = true,  // so that end() also kills the child's children
                           .dies_with_parent = true});
    output_ = pipe.take_reader();
    ::fcntl(output_, F_SETFL, O_NONBLOCK);  // only the agent's end; the child's writes may block
}

ChildTask::~ChildTask() {
    end();
    if (output_ >= 0) ::close(output_);
}

/// Kills the child and its children, and reaps the child. While the GPU hangs, a killed process may
/// not end, so end() waits at most 100 ms and then leaves the reaping to a thread.
void ChildTask::end() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);  // also directly, in case the child has left its group
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 2'000'000};
    bool is_running = true;
    for (int i = 0; i < 50 && is_running; ++i) {
        is_running = ::waitpid(pid_, nullptr, WNOHANG) == 0;
        if (is_running) ::nanosleep(&kPause, nullptr);
    }
    if (is_running) std::thread([pid = pid_] { ::waitpid(pid, nullptr, 0); }).detach();
    pid_ = -1;
}

void ChildTask::read_output() {
    std::array<char, 512> buffer{};
    for (;;) {
        const ssize_t got = ::read(output_, buffer.data(), buffer.size());
        if (got <= 0) return;
        text_.append(buffer.data(), static_cast<std::size_t>(got));
        text_.resize(std::min(text_.size(), kMaxText));
    }
}

Outcome ChildTask::outcome_of(int status) const {
    if (WIFSIGNALED(status))
        return {.is_ok = false,
                .text = fmt::format("the self-test was ended by signal {} ({})", WTERMSIG(status),
                                    ::strsignal(WTERMSIG(status)))};
    const std::string line = text_.substr(0, text_.find('\n'));
    const bool is_ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return {.is_ok = is_ok,
            .text = line.empty() && !is_ok ? fmt::format("status {}", WEXITSTATUS(status)) : line};
}

std::optional<Outcome> ChildTask::poll(Nanoseconds now) {
    if (pid_ <= 0) return Outcome{.is_ok = false, .text = "cannot start a process"};
    read_output();
    int status = 0;
    // checked before the deadline, so that a late poll() does not fail a child that ended in time
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        read_output();
        pid_ = -1;
        return outcome_of(status);
    }
    if (now < deadline_) return {};
    end();
    return Outcome{.is_ok = false, .text = "the self-test did not end in time and was killed"};
}

}  // namespace vgpu::agent
