// SPDX-License-Identifier: MIT
//
// EventfdSignaller: signals eventfds that belong to clients and waits for none of them. write(2)
// to an eventfd whose count is full waits unless the file is non-blocking, and a client, which has
// the same open file, can fill it and change that flag at any moment. What never waits is the
// kernel's own signal, and user space gets it as the end of a request of asynchronous I/O
// (io_submit(2), aio_resfd): here an empty write to /dev/null, which has ended when io_submit()
// returns. It costs one system call, as write(2).
//
// One for the process, since the host has a limit for all of them (fs.aio-max-nr). Any thread.
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

    /// Before the first signal(); nothing if it has been done. An error may be over later.
    [[nodiscard]] Result<> start();
    /// False: `eventfd` is none, or the kernel has no memory. A full one is signalled already.
    [[nodiscard]] bool signal(int eventfd);

private:
    EventfdSignaller() = default;
    void forget_results();

    std::mutex mutex_;  // of start(); what it sets does not change any more
    OwnedFd null_;
    aio_context_t context_ = 0;
};

}  // namespace vgpu::softgpu::pci
