// SPDX-License-Identifier: MIT
//
// Interruption: the ways in which a verb that goes on until it is stopped is stopped: SIGINT,
// SIGTERM (by a descriptor), and a reader of its output that is gone (SIGPIPE is not delivered;
// writing fails). While it lives these signals do nothing else; afterwards all is as before. Used
// by top and events; one thread.
#pragma once

#include <poll.h>
#include <chrono>
#include <csignal>
#include <vector>

namespace vgpu::cli {

/// Standard output has no other end any more: who reads its pipe or socket, or its terminal.
/// Only then does writing fail without anything being wrong.
[[nodiscard]] bool is_reader_gone();

/// Changes the signal mask and SIGPIPE of the process, so there is one at a time, made before
/// threads are.
class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    /// Waits that long; true if it was interrupted.
    /// A signal that came is not used up: every later wait is true at once, too.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;
    /// To wait for together with other things; ready ones tell that it is over.
    [[nodiscard]] std::vector<pollfd> fds() const;

private:
    int fd_ = -1;
    sigset_t old_mask_{};
    void (*old_pipe_)(int) = SIG_DFL;
};

}  // namespace vgpu::cli
