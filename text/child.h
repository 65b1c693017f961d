// SPDX-License-Identifier: MIT
//
// Starts other programs, in one way for all of this project: no shell, no blocked signals, and no
// descriptors but the first three. A program that cannot be executed is an error of the start.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace vgpu::text {

/// Descriptors of -1 are /dev/null. They stay the caller's.
struct ChildSetup {
    std::vector<std::string> command;  ///< program, found in PATH, and arguments
    int input = -1;
    int output = -1;
    int errors = -1;
    bool has_own_group = false;     ///< so that kill(-pid) reaches its children, too
    bool dies_with_parent = false;  ///< with the thread that starts it
};

/// The pid of a child that runs the program, or a negated errno.
[[nodiscard]] pid_t start_child(const ChildSetup& setup);

/// Both ends are closed on exec and with the pipe; -1: none could be made.
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
    /// The end is the caller's from now on.
    [[nodiscard]] int take_reader();
    [[nodiscard]] int take_writer();

private:
    int reader_ = -1, writer_ = -1;
};

/// Statuses of a shell and of timeout(1).
inline constexpr int kTimedOut = 124;
inline constexpr int kNotStarted = 127;
inline constexpr int kSignal = 128;

struct Finished {
    int status = kNotStarted;  ///< exit status, kSignal + signal, kTimedOut, kNotStarted
    std::string out{};
    std::string err{};  ///< or why it could not start
};

/// Runs a program to its end, with /dev/null as input. Kills it, but not its children, after
/// `limit`, or if it writes `max_bytes` or more: kTimedOut.
[[nodiscard]] Finished run_child(const std::vector<std::string>& command,
                                 std::chrono::milliseconds limit, std::size_t max_bytes);

}  // namespace vgpu::text
