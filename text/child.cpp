// SPDX-License-Identifier: MIT
#include "text/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace vgpu::text {

namespace {

using Time = std::chrono::steady_clock::time_point;

void close_fd(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
}

/// Makes `streams` the descriptors 0, 1 and 2; -1 becomes /dev/null. A stream or the opened
/// /dev/null may have one of these numbers, and an earlier dup2() would overwrite it. So this
/// function first duplicates all streams to numbers above 2.
void put_in_place(std::array<int, 3> streams) {
    for (int& fd : streams) {
        if (fd < 0) fd = ::open("/dev/null", O_RDWR);
        fd = ::fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
    }
    for (int i = 0; i <= STDERR_FILENO; ++i) ::dup2(streams.at(static_cast<std::size_t>(i)), i);
}

/// Executes the program in the child. Calls no function that allocates memory or takes a lock,
/// because this code runs after fork(). If exec fails, writes the errno to `failure_fd`. A
/// successful exec closes `failure_fd`.
[[noreturn]] void become(const ChildSetup& setup, char* const* command, int failure_fd) {
    if (setup.has_own_group) ::setpgid(0, 0);
    if (setup.dies_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    // The failure descriptor becomes 3, so that one close_range() from 4 on closes all others.
    constexpr int kFailure = STDERR_FILENO + 1;
    const int failure = ::fcntl(failure_fd, F_DUPFD, kFailure);
    put_in_place({setup.input, setup.output, setup.errors});
    if (failure != kFailure) ::dup2(failure, kFailure);
    ::fcntl(kFailure, F_SETFD, FD_CLOEXEC);
    ::close_range(kFailure + 1, ~0u, 0);
    ::execvp(command[0], command);
    const int code = errno;
    // the comparison avoids a warning about the unused result, which a cast alone does not
    static_cast<void>(::write(kFailure, &code, sizeof code) == 0);
    ::_exit(kNotStarted);
}

/// Milliseconds until `deadline`, rounded up, so that poll() does not spin in the last millisecond.
int left_ms(Time deadline) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

/// Reads from the pipe once and appends the bytes to `text`. Closes the reader at the end of the
/// pipe, or after an error other than EINTR.
void read_once(Pipe& pipe, std::string& text) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(pipe.reader(), buffer.data(), buffer.size());
    if (count > 0) return void(text.append(buffer.data(), static_cast<std::size_t>(count)));
    if (count == 0 || errno != EINTR) pipe.close_reader();
}

/// Reads both pipes to their ends. False if no more bytes arrive before `deadline`, if poll()
/// fails, or if one output reaches `max_bytes`.
bool read_all(Pipe& out, Pipe& err, Finished& finished, Time deadline, std::size_t max_bytes) {
    while (out.reader() >= 0 || err.reader() >= 0) {
        std::array<pollfd, 2> polled{pollfd{out.reader(), POLLIN, 0},
                                     pollfd{err.reader(), POLLIN, 0}};
        const int ready = ::poll(polled.data(), polled.size(), left_ms(deadline));
        if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
        if (ready > 0 && polled[0].revents != 0) read_once(out, finished.out);
        if (ready > 0 && polled[1].revents != 0) read_once(err, finished.err);
        if (std::max(finished.out.size(), finished.err.size()) >= max_bytes) return false;
    }
    return true;
}

/// Waits until the program ends, which may be after the end of its outputs. False after `deadline`,
/// or if pidfd_open or poll() fails, also if a signal interrupts poll().
bool wait_for_end(pid_t pid, Time deadline) {
    // by syscall(), because the header of glibc 2.36 that declares pidfd_open does not support C++
    int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return false;
    pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
    const bool ended = ::poll(&polled, 1, left_ms(deadline)) > 0;
    close_fd(fd);
    return ended;
}

/// Waits for the child without a time limit. Returns a value for Finished::status.
int reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return kNotStarted;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status);
}

}  // namespace

Pipe::Pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    reader_ = ends[0];
    writer_ = ends[1];
}

Pipe::~Pipe() {
    close_reader();
    close_writer();
}

void Pipe::close_reader() {
    close_fd(reader_);
}

void Pipe::close_writer() {
    close_fd(writer_);
}

int Pipe::take_reader() {
    return std::exchange(reader_, -1);
}

int Pipe::take_writer() {
    return std::exchange(writer_, -1);
}

pid_t start_child(const ChildSetup& setup) {
    std::vector<std::string> words = setup.command;
    std::vector<char*> command;
    for (std::string& word : words) command.push_back(word.data());
    command.push_back(nullptr);
    Pipe failure;
    if (failure.reader() < 0) return -errno;
    const pid_t pid = ::fork();
    if (pid < 0) return -errno;
    if (pid == 0) become(setup, command.data(), failure.writer());
    failure.close_writer();
    int code = 0;
    ssize_t got = 0;
    do {
        got = ::read(failure.reader(), &code, sizeof code);
    } while (got < 0 && errno == EINTR);
    // a successful exec closes the pipe, so that nothing was read
    if (got != sizeof code) return pid;
    static_cast<void>(reap(pid));
    return -code;
}

Finished run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                   std::size_t max_bytes) {
    Pipe out, err;
    const pid_t pid =
        start_child({.command = command, .output = out.writer(), .errors = err.writer()});
    if (pid < 0) return {.err = std::strerror(-pid)};
    out.close_writer();
    err.close_writer();
    Finished finished;
    const Time deadline = std::chrono::steady_clock::now() + limit;
    const bool is_whole =
        read_all(out, err, finished, deadline, max_bytes) && wait_for_end(pid, deadline);
    if (!is_whole) ::kill(pid, SIGKILL);
    finished.status = reap(pid);
    if (!is_whole) finished.status = kTimedOut;
    return finished;
}

}  // namespace vgpu::text
