// SPDX-License-Identifier: MIT
#include "vf-agent/child_task.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

namespace vgpu::agent {

namespace {

constexpr std::size_t kMaxText = 400;

/// Runs in the child, so it makes only async-signal-safe calls.
[[noreturn]] void become(char* const* command, int output) {
    // a group, so that end() also reaches the child's children
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(output, STDOUT_FILENO);
    ::execv(command[0], command);
    ::_exit(127);
}

}  // namespace

ChildTask::ChildTask(std::vector<std::string> command, Nanoseconds deadline) : deadline_(deadline) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // only our end: the child's writes may wait
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) become(words.data(), ends[1]);
    ::close(ends[1]);
    output_ = ends[0];
}

ChildTask::~ChildTask() {
    end();
    if (output_ >= 0) ::close(output_);
}

/// Kills the child. A GPU that hangs can keep a killed process, so this waits up to 100 ms and then
/// leaves the reaping to a thread.
void ChildTask::end() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 2'000'000};
    bool is_there = true;
    for (int i = 0; i < 50 && is_there; ++i) {
        is_there = ::waitpid(pid_, nullptr, WNOHANG) == 0;
        if (is_there) ::nanosleep(&kPause, nullptr);
    }
    if (is_there) std::thread([pid = pid_] { ::waitpid(pid, nullptr, 0); }).detach();
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
    // checked before the deadline, so that a slow loop does not report the child as late
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
