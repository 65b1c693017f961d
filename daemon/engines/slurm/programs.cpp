// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace vgpu::slurm {

namespace {

constexpr int kTimedOut = 124;
constexpr int kNotStarted = 127;
constexpr int kSignal = 128;

using Clock = std::chrono::steady_clock;

/// A pipe whose ends close with it.
class Pipe {
public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    [[nodiscard]] int read_end() const { return ends_[0]; }
    [[nodiscard]] int write_end() const { return ends_[1]; }
    void close_end(std::size_t end) {
        if (ends_.at(end) >= 0) ::close(ends_.at(end));
        ends_.at(end) = -1;
    }

private:
    std::array<int, 2> ends_{};
};

/// Appends what can be read; closes the pipe at its end.
void take(Pipe& pipe, std::string& text) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(pipe.read_end(), buffer.data(), buffer.size());
    if (count > 0) return void(text.append(buffer.data(), static_cast<std::size_t>(count)));
    if (count == 0 || errno != EINTR) pipe.close_end(0);
}

/// Reads both pipes to their ends. False if the time was over before.
bool read_all(Pipe& out, Pipe& err, Ran& ran, Clock::time_point until) {
    while (out.read_end() >= 0 || err.read_end() >= 0) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return false;
        std::array<pollfd, 2> pipes{pollfd{out.read_end(), POLLIN, 0},
                                    pollfd{err.read_end(), POLLIN, 0}};
        if (::poll(pipes.data(), pipes.size(), static_cast<int>(left)) < 0 && errno != EINTR)
            return false;
        if (pipes[0].revents != 0) take(out, ran.out);
        if (pipes[1].revents != 0) take(err, ran.err);
    }
    return true;
}

int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return kNotStarted;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status);
}

}  // namespace

Ran Programs::run(const std::vector<std::string>& argv) {
    const std::string program = directory_.empty() ? argv[0] : directory_ + "/" + argv[0];
    std::vector<char*> arguments;
    for (const std::string& one : argv) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    Pipe out, err;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
    pid_t child = -1;
    const int failed =
        ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return {.status = kNotStarted, .out = "", .err = std::strerror(failed)};
    out.close_end(1);
    err.close_end(1);
    Ran ran;
    const bool is_whole = read_all(out, err, ran, Clock::now() + limit_);
    if (!is_whole) ::kill(child, SIGKILL);
    ran.status = wait_for(child);
    if (!is_whole) ran.status = kTimedOut;
    return ran;
}

}  // namespace vgpu::slurm
