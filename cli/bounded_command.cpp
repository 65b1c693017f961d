// SPDX-License-Identifier: MIT
#include "cli/bounded_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>

extern char** environ;

namespace vgpu::cli {

namespace {

constexpr std::size_t kMax = 64 * 1024;

using Time = std::chrono::steady_clock::time_point;

/// Starts the command with its standard output in `out` and the rest in /dev/null. -1 if there is
/// no such program.
pid_t start(const std::vector<std::string>& command, int out) {
    std::vector<std::string> words = command;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? pid : -1;
}

/// The time left, rounded up, so that poll() does not spin in the last millisecond.
int left_ms(Time end) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

/// Reads until end of file. False on timeout or for too much output.
bool read_all(int fd, Time end, std::string& text) {
    std::array<char, 4096> buffer{};
    pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
    while (text.size() < kMax && ::poll(&polled, 1, left_ms(end)) > 0) {
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        if (got <= 0) return got == 0;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return false;
}

bool ends(pid_t pid, Time end) {
    // called by number, because glibc 2.36's header does not support C++
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return false;
    pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
    const bool ended = ::poll(&polled, 1, left_ms(end)) > 0;
    ::close(fd);
    return ended;
}

}  // namespace

/// Waits even for a program that has closed its output, because its exit status matters.
std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     std::chrono::milliseconds limit) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
    const pid_t pid = start(command, pipe[1]);
    ::close(pipe[1]);
    std::string text;
    bool is_whole = false;
    int status = -1;
    if (pid > 0) {
        const Time end = std::chrono::steady_clock::now() + limit;
        is_whole = read_all(pipe[0], end, text) && ends(pid, end);
        if (!is_whole) ::kill(pid, SIGKILL);
        ::waitpid(pid, &status, 0);
    }
    ::close(pipe[0]);
    if (!is_whole || status != 0) return {};
    return text;
}

}  // namespace vgpu::cli
