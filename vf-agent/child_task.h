// SPDX-License-Identifier: MIT
//
// ChildTask: runs a program as a Task. The agent runs its self-test as a ChildTask, because ROCr
// may crash or hang. Exit status 0 is success. The text of the Outcome is the program's first line
// of output; after a crash, the text names the signal. The program and its children are killed at
// the deadline, or when the ChildTask is destroyed earlier.
#pragma once

#include "vf-agent/session.h"

#include <string>
#include <vector>

namespace vgpu::agent {

/// poll() reaps the child, so no other code may wait for the child.
class ChildTask final : public Task {
public:
    /// `command`: path of the program, and arguments. `deadline`: on the clock of poll()'s `now`.
    /// If the program cannot start, poll() returns a failure.
    ChildTask(std::vector<std::string> command, Nanoseconds deadline);
    ~ChildTask() override;
    ChildTask(const ChildTask&) = delete;
    ChildTask& operator=(const ChildTask&) = delete;

    /// None while the program runs. Blocks only to kill the program, up to 100 ms. Must not be
    /// called again after it has returned an outcome.
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
