// SPDX-License-Identifier: MIT
//
// ChildTask runs one of our programs as a Task. Exit status 0 is success; the first line that the
// program prints is the text of the outcome. The program and its children are killed at the
// deadline or when the task is destroyed; a crash fails and names the signal. LinuxGuest makes it.
#pragma once

#include "vf-agent/session.h"

#include <string>
#include <vector>

namespace vgpu::agent {

/// Not thread-safe: poll() reaps the child, so no other code may wait for it.
class ChildTask final : public Task {
public:
    /// `command`: path and arguments; PATH is not searched. Signals are unblocked in the child, and
    /// its standard error is ours. If the child does not start, the first poll() fails.
    ChildTask(std::vector<std::string> command, Nanoseconds deadline);
    ~ChildTask() override;
    ChildTask(const ChildTask&) = delete;
    ChildTask& operator=(const ChildTask&) = delete;

    /// Blocks only if it has to kill, for at most 100 ms. Do not call it after an outcome.
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
