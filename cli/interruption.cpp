// SPDX-License-Identifier: MIT
#include "cli/interruption.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace vgpu::cli {

bool is_reader_gone() {
    pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
    return ::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// Blocks the signals. They stay pending, so a signal between two waits is not lost.
Interruption::Interruption() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGINT);
    ::sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, &old_mask_);
    fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    old_sigpipe_action_ = std::signal(SIGPIPE, SIG_IGN);
}

Interruption::~Interruption() {
    // consume pending signals, which would end the process when the mask is restored
    signalfd_siginfo signal{};
    while (::read(fd_, &signal, sizeof signal) > 0) {
    }
    if (fd_ >= 0) ::close(fd_);
    if (old_sigpipe_action_ != SIG_ERR) std::signal(SIGPIPE, old_sigpipe_action_);
    ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

bool Interruption::wait(std::chrono::milliseconds time) const {
    std::vector<pollfd> waited = fds();
    return ::poll(waited.data(), waited.size(), static_cast<int>(time.count())) != 0;
}

std::vector<pollfd> Interruption::fds() const {
    // events = 0: poll() reports only errors; with POLLIN, a key press on a terminal would count
    return {{.fd = fd_, .events = POLLIN, .revents = 0},
            {.fd = STDOUT_FILENO, .events = 0, .revents = 0}};
}

}  // namespace vgpu::cli
