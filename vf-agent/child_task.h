// SPDX-License-Identifier: MIT
//
// ChildTask runs a program as a Task. Exit status 0 is success; the first line of output is the
// text. Killed with its children at the deadline or by the destructor. A crash names the signal.
#pragma once

#include "vf-agent/session.h"

#include <string>
#include <vector>

namespace vgpu::agent {

/// poll() reaps the child: nothing else may wait for it.
class ChildTask final : public Task {
public:
    /// `command`: path (not searched in PATH) and arguments. Unblocks signals in the child. If it
    /// does not start, poll() fails.
    ChildTask(std::vector<std::string> command, Nanoseconds deadline);
    ~ChildTask() override;
    ChildTask(const ChildTask&) = delete;
    ChildTask& operator=(const ChildTask&) = delete;

    /// Blocks only to kill, up to 100 ms. Not after an outcome.
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
