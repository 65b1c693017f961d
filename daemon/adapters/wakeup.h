// SPDX-License-Identifier: MIT
//
// Wakeup: an eventfd by which one thread makes the poll() of another thread return. A raise()
// before the poll() is not lost. Any thread may call a Wakeup.
#pragma once

#include "daemon/adapters/unique_fd.h"

#include <sys/eventfd.h>

namespace vgpu::daemon::adapters {

/// Several calls of raise() count as one.
class Wakeup {
public:
    Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    void raise() const { ::eventfd_write(fd_.get(), 1); }
    /// True if raise() was called since the last clear().
    bool clear() const {
        eventfd_t count = 0;
        return ::eventfd_read(fd_.get(), &count) == 0;
    }
    /// Readable from raise() until clear().
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    UniqueFd fd_;
};

}  // namespace vgpu::daemon::adapters
