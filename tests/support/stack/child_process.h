// SPDX-License-Identifier: MIT
//
// ChildProcess: one program under test. It starts the program with its output in a log file, waits
// for text in the log, sends signals and waits for the end. The destructor ends the program (TERM,
// then KILL after 3 s, scaled).
//
// Programs that vgpud starts outlive vgpud on purpose. Orphans makes the test process their
// subreaper and ends those that are left.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/deadline.h"

namespace vgpu::test {

/// Full path of a program of this build.
[[nodiscard]] std::string program(const std::string& name);
/// Full path of a file below the build directory, e.g. "kernels/matmul.co".
[[nodiscard]] std::string build_file(const std::string& relative);

class ChildProcess {
public:
    struct Spec {
        std::string name;  ///< for messages and the log file's name
        std::vector<std::string> argv;
        std::string log;                         ///< file for stdout and stderr
        std::vector<std::string> environment{};  ///< NAME=value, added
    };

    explicit ChildProcess(Spec spec);
    ~ChildProcess();
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&&) = delete;

    /// Waits until the log holds `text`; throws with the log's tail if the program ends before that
    /// or `limit` (scaled) passes.
    void wait_for_output(const std::string& text, milliseconds limit = milliseconds(10000));
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool is_running();
    void signal(int number) const;
    /// kill -9 and wait for the end.
    void kill_now();
    /// Exit status as the shell counts it (128 + signal); throws after `limit` (scaled).
    int wait_exit(milliseconds limit = milliseconds(10000));
    [[nodiscard]] std::string output() const;

private:
    bool reap(milliseconds limit);

    Spec spec_;
    pid_t pid_ = -1;
    std::optional<int> status_;
};

/// Result of a short-lived program.
struct Completed {
    int status = 0;
    std::string out;
};
/// Runs a program to its end; stdout and stderr in `out`.
[[nodiscard]] Completed run(const std::vector<std::string>& argv,
                            const std::vector<std::string>& environment = {},
                            milliseconds limit = milliseconds(20000));

/// From the constructor on, orphans of this process' children become its own children. The
/// destructor kills all children that are left.
class Orphans {
public:
    Orphans();
    ~Orphans();
    Orphans(const Orphans&) = delete;
    Orphans& operator=(const Orphans&) = delete;
};

}  // namespace vgpu::test
