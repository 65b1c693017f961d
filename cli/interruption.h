// SPDX-License-Identifier: MIT
//
// Interruption stops a verb that runs until it is stopped: on SIGINT or SIGTERM (read from a
// descriptor), or when the reader of the output has gone (SIGPIPE is ignored; the write fails).
// While it exists, these signals have no other effect; its destructor restores them. Used by top,
// events and trace; one thread.
#pragma once

#include <poll.h>
#include <chrono>
#include <csignal>
#include <vector>

namespace vgpu::cli {

/// True if the reader of standard output (pipe, socket or terminal) has gone.
/// A failed write is not an error in this case.
[[nodiscard]] bool is_reader_gone();

/// Changes signal mask and SIGPIPE of the process: one at a time, made before any thread starts.
class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    /// Waits for `time`; true if interrupted.
    /// Does not consume the signal: every later wait returns true at once.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;
    /// Descriptors to poll together with others; a ready one means interrupted.
    [[nodiscard]] std::vector<pollfd> fds() const;

private:
    int fd_ = -1;
    sigset_t old_mask_{};
    void (*old_pipe_)(int) = SIG_DFL;
};

}  // namespace vgpu::cli
