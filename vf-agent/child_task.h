// SPDX-License-Identifier: MIT
//
// ChildTask: runs a program as a Task. Exit status 0 is success, and the first line of output is
// the text. At the deadline, or in the destructor, the program is killed with its children. After a
// crash the text names the signal.
#pragma once

#include "vf-agent/session.h"

#include <string>
#include <vector>

namespace vgpu::agent {

/// poll() reaps the child, so nothing else may wait for it.
class ChildTask final : public Task {
public:
    /// `command`: path (not searched in PATH) and arguments. The child has no blocked signals. If
    /// it cannot start, poll() returns a failure.
    ChildTask(std::vector<std::string> command, Nanoseconds deadline);
    ~ChildTask() override;
    ChildTask(const ChildTask&) = delete;
    ChildTask& operator=(const ChildTask&) = delete;

    /// Blocks only to kill, up to 100 ms. Do not call it after an outcome.
    std::optional<Outcome> poll(Nanoseconds now) override;

private:
    void read_output();
    void end();
    [[nodiscard]] Outcome outcome_of(int status) const;

    Nanoseconds deadline_;
    int pid_ = -1;
    int output_ = -1;
    std::string text_;
};

}  // namespace vgpu::agent
