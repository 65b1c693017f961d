// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/uevents.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

namespace vgpu::daemon::sriov {

namespace {

/// The netlink group of the kernel's uevents; udev uses group 2.
constexpr std::uint32_t kKernelGroup = 1;
constexpr std::size_t kMaxMessage = 8192;

/// The value of "KEY=…" in a message; empty if the message has no such key.
std::string_view value_of(std::string_view message, std::string_view key) {
    while (!message.empty()) {
        const std::string_view line = message.substr(0, message.find('\0'));
        if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == '=')
            return line.substr(key.size() + 1);
        message.remove_prefix(std::min(message.size(), line.size() + 1));
    }
    return {};
}

/// True if the kernel sent the message: its netlink port is 0.
bool is_from_kernel(const sockaddr_nl& sender) {
    return sender.nl_family == AF_NETLINK && sender.nl_pid == 0 && sender.nl_groups == kKernelGroup;
}

}  // namespace

std::optional<Uevent> parse_uevent(std::string_view message) {
    if (value_of(message, "SUBSYSTEM") != "pci") return {};
    Uevent event{.action = std::string(value_of(message, "ACTION")),
                 .address = std::string(value_of(message, "PCI_SLOT_NAME")),
                 .driver = std::string(value_of(message, "DRIVER"))};
    if (event.action.empty() || event.address.empty()) return {};
    return event;
}

bool changes_driver_of(const Uevent& event, std::string_view address) {
    return event.address == address && (event.action == "bind" || event.action == "unbind");
}

Result<> UeventSocket::open() {
    close();
    fd_ = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (fd_ < 0) return fail_errno(ErrorId::System, errno, "cannot open a netlink socket");
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = kKernelGroup;
    if (::bind(fd_, static_cast<const sockaddr*>(static_cast<const void*>(&address)),
               sizeof address) == 0)
        return {};
    const int code = errno;
    close();
    return fail_errno(ErrorId::System, code, "cannot listen to the kernel's uevents");
}

void UeventSocket::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

UeventSocket::Batch UeventSocket::read() {
    Batch batch;
    std::array<char, kMaxMessage> text{};
    while (fd_ >= 0) {
        sockaddr_nl sender{};
        socklen_t size = sizeof sender;
        const ssize_t got = ::recvfrom(fd_, text.data(), text.size(), MSG_DONTWAIT,
                                       static_cast<sockaddr*>(static_cast<void*>(&sender)), &size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ENOBUFS) {
            batch.has_lost = true;
            continue;
        }
        if (got < 0) break;
        if (!is_from_kernel(sender)) continue;
        if (auto event = parse_uevent({text.data(), static_cast<std::size_t>(got)}))
            batch.events.push_back(*std::move(event));
    }
    return batch;
}

}  // namespace vgpu::daemon::sriov
