// SPDX-License-Identifier: MIT
//
// Starts other programs without a shell, without blocked signals, and with no descriptors but the
// first three. If the program cannot be executed, the start fails.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace vgpu::text {

/// A descriptor of -1 means /dev/null. The caller keeps the descriptors.
struct ChildSetup {
    std::vector<std::string> command;  ///< program, found in PATH, and arguments
    int input = -1;
    int output = -1;
    int errors = -1;
    bool has_own_group = false;     ///< so that kill(-pid) reaches its children, too
    bool dies_with_parent = false;  ///< killed when the thread that starts it ends
};

/// The pid of a child that runs the program, or a negated errno.
[[nodiscard]] pid_t start_child(const ChildSetup& setup);

/// A pipe whose ends are closed on exec and by the destructor. Both are -1 if no pipe could be
/// made.
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
    /// Returns the end, which the caller must close.
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
