// SPDX-License-Identifier: MIT
//
// Interruption ends an endless verb on SIGINT, SIGTERM, or when the output's reader goes (SIGPIPE
// is ignored; the write fails). The signals have no other effect meanwhile. One thread.
#pragma once

#include <poll.h>
#include <chrono>
#include <csignal>
#include <vector>

namespace vgpu::cli {

/// Standard output's reader has gone, so a failed write is no error.
[[nodiscard]] bool is_reader_gone();

/// Changes the process's signal mask and SIGPIPE: one at a time, before any thread.
class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    /// True if interrupted, then for every later wait.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;
    /// To poll with others; ready: interrupted.
    [[nodiscard]] std::vector<pollfd> fds() const;

private:
    int fd_ = -1;
    sigset_t old_mask_{};
    void (*old_pipe_)(int) = SIG_DFL;
};

}  // namespace vgpu::cli
