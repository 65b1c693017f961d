// SPDX-License-Identifier: MIT
//
// Starts other programs, without a shell. A program starts without blocked signals, and with no
// descriptors except standard input, output and error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace vgpu::text {

/// What start_child() starts. A descriptor of -1 means /dev/null. start_child() closes none of
/// these descriptors in the calling process.
struct ChildSetup {
    std::vector<std::string> command;  ///< program, found in PATH, and arguments
    int input = -1;
    int output = -1;
    int errors = -1;
    /// True: the program gets its own process group, so that kill(-pid) also reaches its children.
    bool has_own_group = false;
    /// True: the kernel kills the program when the thread that started it ends.
    bool dies_with_parent = false;
};

/// Starts a program. Returns the pid of the child that runs the program, or a negated errno if the
/// program could not be started.
[[nodiscard]] pid_t start_child(const ChildSetup& setup);

/// A pipe whose ends are closed on exec and by the destructor. Both ends are -1 if the pipe could
/// not be made.
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
    /// Each returns one end of the pipe, which the caller must then close.
    [[nodiscard]] int take_reader();
    [[nodiscard]] int take_writer();

private:
    int reader_ = -1, writer_ = -1;
};

// Values of Finished::status, the same as those of timeout(1) and of a shell.
inline constexpr int kTimedOut = 124;
inline constexpr int kNotStarted = 127;
inline constexpr int kSignal = 128;  ///< plus the number of the signal that ended the program

struct Finished {
    int status = kNotStarted;  ///< exit status, kSignal + signal, kTimedOut or kNotStarted
    std::string out{};         ///< standard output
    std::string err{};         ///< standard error; for kNotStarted, the reason
};

/// Runs a program and waits for its end. The program's input is /dev/null. After `limit`, or if the
/// program writes `max_bytes` or more to one output, kills the program, but not its children, and
/// returns the status kTimedOut.
[[nodiscard]] Finished run_child(const std::vector<std::string>& command,
                                 std::chrono::milliseconds limit, std::size_t max_bytes);

}  // namespace vgpu::text
