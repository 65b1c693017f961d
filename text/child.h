// SPDX-License-Identifier: MIT
//
// Starts other programs, without a shell. A program starts with no blocked signals, the default
// action for SIGPIPE, and no descriptors except standard input, output and error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace vgpu::text {

/// The program that start_child() starts, and its descriptors. A descriptor of -1 means /dev/null.
/// start_child() closes none of these descriptors in the calling process.
struct ChildSetup {
    std::vector<std::string> command;  ///< program (searched in PATH) and arguments
    int input = -1;
    int output = -1;
    int errors = -1;
    /// True: the program gets its own process group, so that kill(-pid) also reaches its children.
    bool has_own_group = false;
    /// True: the kernel kills the program when the thread that called start_child() ends.
    bool dies_with_parent = false;
};

/// Starts a program. Returns the pid of the child, which the caller must reap, or a negated errno
/// if the program could not be started.
[[nodiscard]] pid_t start_child(const ChildSetup& setup);

/// A pipe. Both ends are close-on-exec, and the destructor closes each end that was not taken. An
/// end is -1 if the pipe could not be made, or after the end was closed or taken.
class Pipe {
public:
    Pipe();
    ~Pipe();
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    [[nodiscard]] int reader() const { return reader_; }
    [[nodiscard]] int writer() const { return writer_; }
    void close_reader();
    void close_writer();
    /// Each function returns one end of the pipe; the caller must close this end.
    [[nodiscard]] int take_reader();
    [[nodiscard]] int take_writer();

private:
    int reader_ = -1, writer_ = -1;
};

// Values of Finished::status, the same as those of timeout(1) and of a shell.
inline constexpr int kTimedOut = 124;
inline constexpr int kNotStarted = 127;
inline constexpr int kSignal = 128;  ///< kSignal + N: signal N ended the program

/// The result of run_child().
struct Finished {
    int status = kNotStarted;  ///< exit status, kSignal + N, kTimedOut or kNotStarted
    std::string out{};         ///< standard output
    std::string err{};         ///< standard error; if the program was not started, the reason
};

/// Runs a program and waits for its end and for the end of its outputs, which children of the
/// program may keep open. The program's input is /dev/null. If this takes longer than `limit`, if
/// `max_bytes` or more arrive from standard output or from standard error, or if waiting fails,
/// run_child() kills the program, but not its children. The status is then kTimedOut.
[[nodiscard]] Finished run_child(const std::vector<std::string>& command,
                                 std::chrono::milliseconds limit, std::size_t max_bytes);

}  // namespace vgpu::text
