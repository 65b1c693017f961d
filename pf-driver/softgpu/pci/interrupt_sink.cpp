// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/interrupt_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::pci {
namespace {

// Writing to anything else could block the device or reach a file of the client's choice; eventfds
// (and their harmless kin, which refuse writes) are files without a type.
bool is_eventfd_like(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

bool make_non_blocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

bool EventfdSink::deliver(std::uint32_t vector, const InterruptMessage&) {
    if (!eventfds_[vector]) return false;
    ::eventfd_write(eventfds_[vector].get(), 1);  // full: it is signalled already
    return true;
}

/// Checked completely first: a request with one bad descriptor changes nothing.
Result<> EventfdSink::assign(const vfio_user::IrqRequest& request) {
    for (const OwnedFd& fd : request.fds) {
        if (!fd) continue;
        if (!is_eventfd_like(fd.get()) || !make_non_blocking(fd.get()))
            return fail(EINVAL, fmt::format("{}: an interrupt descriptor is no eventfd", name_));
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
