// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/interrupt_sink.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/file_status.h"
#include "pf-driver/softgpu/pci/eventfd_signaller.h"

namespace vgpu::softgpu::pci {
namespace {

// True if st_mode has no file type, as for every eventfd. So false means that the client made a
// mistake, which assign() can report at once. Some other files have no type either. They do no
// harm, because signalling them only fails.
bool is_eventfd_like(int fd) {
    struct stat status {};
    return file_status(fd, status) && (status.st_mode & S_IFMT) == 0;
}

}  // namespace

/// Starts the signaller when the device is built: later, other processes may have used up the
/// host's limit (fs.aio-max-nr), or softgpu may be confined (EventfdSignaller::start()).
EventfdSink::EventfdSink(std::string name, std::uint32_t vectors)
    : name_(std::move(name)), eventfds_(vectors) {
    (void)EventfdSignaller::shared().start();  // assign() tries again and reports an error
}

bool EventfdSink::deliver(std::uint32_t vector, const InterruptMessage&) {
    const OwnedFd& eventfd = eventfds_[vector];
    return eventfd && EventfdSignaller::shared().signal(eventfd.get());
}

/// Checks everything first: a request with one bad descriptor changes nothing.
Result<> EventfdSink::assign(const vfio_user::IrqRequest& request) {
    TRY_VOID(EventfdSignaller::shared().start());
    for (const OwnedFd& fd : request.fds) {
        if (!fd) continue;
        if (!is_eventfd_like(fd.get()))
            return fail(EINVAL,
                        fmt::format("{}: an interrupt descriptor is not an eventfd", name_));
    }
    for (std::uint32_t i = 0; i < request.count; i++)
        eventfds_[request.start + i] = std::move(request.fds[i]);
    return {};
}

void EventfdSink::withdraw() {
    for (OwnedFd& eventfd : eventfds_) eventfd.reset();
}

bool MessageSink::deliver(std::uint32_t, const InterruptMessage& message) {
    return peer_ && peer_->dma_post(message.address, bytes_of(message.data)) == std::errc{};
}

Result<> MessageSink::assign(const vfio_user::IrqRequest&) {
    return fail(ENOTSUP, "a function on a bus signals by message");
}

}  // namespace vgpu::softgpu::pci
