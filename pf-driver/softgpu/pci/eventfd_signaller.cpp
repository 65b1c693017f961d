// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/eventfd_signaller.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace vgpu::softgpu::pci {
namespace {

// Requested capacity of the context; the kernel grants at least eight requests per CPU.
constexpr unsigned kRequests = 64;
// Each failed try frees places in the context, so only a host without memory fails this often.
constexpr int kTries = 100;

}  // namespace

EventfdSignaller& EventfdSignaller::shared() {
    static EventfdSignaller signaller;
    return signaller;
}

/// Nothing destroys the context; the kernel does when the process ends.
Result<> EventfdSignaller::start() {
    const std::lock_guard lock(mutex_);
    if (context_ != 0) return {};
    null_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!null_) return fail_errno(errno, "cannot open /dev/null");
    if (::syscall(SYS_io_setup, kRequests, &context_) != 0)
        return fail_errno(errno, "no asynchronous I/O (CONFIG_AIO, fs.aio-max-nr)");
    return {};
}

/// A request that has ended keeps its place in the context until somebody reads its result. Results
/// have no use here, so signal() reads them only when no place is left (EAGAIN).
bool EventfdSignaller::signal(int eventfd) {
    iocb request{};
    request.aio_lio_opcode = IOCB_CMD_PWRITE;
    request.aio_fildes = static_cast<std::uint32_t>(null_.get());
    request.aio_flags = IOCB_FLAG_RESFD;
    request.aio_resfd = static_cast<std::uint32_t>(eventfd);
    iocb* requests = &request;
    for (int i = 0; i < kTries; i++) {
        if (::syscall(SYS_io_submit, context_, 1L, &requests) == 1) return true;
        if (errno != EAGAIN) return false;
        forget_results();
    }
    return false;
}

void EventfdSignaller::forget_results() {
    std::array<io_event, kRequests> ended{};
    (void)::syscall(SYS_io_getevents, context_, 0L, static_cast<long>(ended.size()), ended.data(),
                    nullptr);
}

}  // namespace vgpu::softgpu::pci
