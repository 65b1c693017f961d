// SPDX-License-Identifier: MIT
//
// ChildTask: a program of ours as a Task: its exit status 0 is success, the first line it prints is
// the text. It is killed, with what it started, at its deadline or when the task is destroyed; a
// crash is a failure that names the signal. Made by LinuxGuest.
#pragma once

#include "vf-agent/session.h"

#include <string>
#include <vector>

namespace vgpu::agent {

/// Not thread-safe: poll() reaps the child, so nobody else may wait for it.
class ChildTask final : public Task {
public:
    /// `command`: path and arguments; the path is not looked for. Signals are unblocked in the
    /// child, its standard error is ours. A child that does not start is one that fails at once.
    ChildTask(std::vector<std::string> command, Nanoseconds deadline);
    ~ChildTask() override;
    ChildTask(const ChildTask&) = delete;
    ChildTask& operator=(const ChildTask&) = delete;

    /// Never blocks, but for at most 100 ms when it has to kill. After an outcome do not ask again.
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
