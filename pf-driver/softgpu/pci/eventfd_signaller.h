// SPDX-License-Identifier: MIT
//
// EventfdSignaller: signals clients' eventfds and never blocks. A plain write(2) can block: a
// client has the same open file, so it can fill the eventfd's count and make the file blocking at
// any moment. But the kernel signals an eventfd without blocking when an asynchronous I/O request
// ends (io_submit(2), aio_resfd). So signal() submits an empty write to /dev/null, which ends
// before io_submit() returns. A signal usually costs one system call, like write(2).
//
// There is one object per process, because the host limits the asynchronous I/O of all processes
// together (fs.aio-max-nr). Any thread may use the object.
#pragma once

#include <linux/aio_abi.h>

#include <mutex>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/base/result.h"

namespace vgpu::softgpu::pci {

class EventfdSignaller {
public:
    [[nodiscard]] static EventfdSignaller& shared();

    EventfdSignaller(const EventfdSignaller&) = delete;
    EventfdSignaller& operator=(const EventfdSignaller&) = delete;

    /// Call before the first signal(); does nothing if already started. After an error a caller may
    /// try again, because the host's limit may be reached only for a time; but in a confined
    /// process (confinement.h), the system calls of start() fail.
    [[nodiscard]] Result<> start();
    /// False if `eventfd` is not an eventfd, start() has not succeeded, or the kernel has no
    /// memory. True also if the count is full: the client has unread signals then.
    [[nodiscard]] bool signal(int eventfd);

private:
    EventfdSignaller() = default;
    void forget_results();

    std::mutex mutex_;  // serialises start(), which sets the members below once
    OwnedFd null_;
    aio_context_t context_ = 0;
};

}  // namespace vgpu::softgpu::pci
