// SPDX-License-Identifier: MIT
//
// EventfdSignaller: signals eventfds that belong to clients without waiting for any client.
// write(2) to an eventfd whose count is full waits unless the file is non-blocking. A client has
// the same open file, so it can fill the count and make the file blocking at any moment. A signal
// by the kernel itself never waits, and the kernel signals an eventfd at the end of an asynchronous
// I/O request (io_submit(2), aio_resfd). Here the request is an empty write to /dev/null, which has
// ended when io_submit() returns. A signal usually costs one system call, as write(2) does.
//
// One object per process, because the host limits asynchronous I/O of all processes together
// (fs.aio-max-nr). Any thread may use it.
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

    /// Call before the first signal(); does nothing if already started. An error may be temporary.
    [[nodiscard]] Result<> start();
    /// False if `eventfd` is not an eventfd, or the kernel has no memory. True if the count is
    /// full, because the client then has unread signals.
    [[nodiscard]] bool signal(int eventfd);

private:
    EventfdSignaller() = default;
    void forget_results();

    std::mutex mutex_;  // for start(); the members that it sets stay constant
    OwnedFd null_;
    aio_context_t context_ = 0;
};

}  // namespace vgpu::softgpu::pci
