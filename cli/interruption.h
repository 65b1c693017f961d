// SPDX-License-Identifier: MIT
//
// Interruption: reports SIGINT, SIGTERM, and the loss of the reader of standard output, so that a
// verb can end its waits. While an Interruption exists, SIGINT and SIGTERM have no other effect,
// and a write without a reader fails but does not end the process (SIGPIPE is ignored). Runs in one
// thread.
#pragma once

#include <poll.h>
#include <chrono>
#include <csignal>
#include <vector>

namespace vgpu::cli {

/// True if the reader of standard output is gone, so that a failed write is not an error.
[[nodiscard]] bool is_reader_gone();

/// Changes the process's signal mask and its action for SIGPIPE. Only one Interruption may exist.
/// Create it before any thread, because threads inherit the signal mask.
class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    /// Waits for `time`. Returns true early if interrupted; every later wait then also returns
    /// true.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;
    /// Two descriptors to poll together with others. If one is ready, the verb is interrupted. The
    /// first reports signals, the second reports the loss of the reader of standard output.
    [[nodiscard]] std::vector<pollfd> fds() const;

private:
    int fd_ = -1;
    sigset_t old_mask_{};
    void (*old_sigpipe_action_)(int) = SIG_DFL;
};

}  // namespace vgpu::cli
