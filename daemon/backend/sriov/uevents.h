// SPDX-License-Identifier: MIT
//
// Uevents: the kernel's messages that a PCI function has appeared, vanished or changed its driver,
// from a netlink socket. They reach a service without a network of its own, because the kernel
// sends them to all its network namespaces; udev's copies do not come there. A message says only
// that a look is due: enabling VFs sends it before the count is stored, and disabling them sends
// nothing for the PF. One thread.
#pragma once

#include "daemon/ports/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::sriov {

struct Uevent {
    std::string action;   ///< "add", "remove", "bind", "unbind", "change"
    std::string address;  ///< "0000:03:00.1"
    std::string driver;   ///< of bind; may be empty

    bool operator==(const Uevent&) const = default;
};

/// None for other subsystems than pci and for malformed messages. Format: "add@/devices/…", then
/// KEY=VALUE, each ended by a zero byte.
[[nodiscard]] std::optional<Uevent> parse_uevent(std::string_view message);

class UeventSocket {
public:
    UeventSocket() = default;
    ~UeventSocket() { close(); }
    UeventSocket(const UeventSocket&) = delete;
    UeventSocket& operator=(const UeventSocket&) = delete;

    /// System, where netlink is not allowed: look once a second instead.
    Result<> open();
    void close();
    /// Readable when there are messages; -1 if it is not open.
    [[nodiscard]] int fd() const { return fd_; }

    struct Batch {
        std::vector<Uevent> events{};
        bool has_lost = false;  ///< the socket overflowed: look at everything
    };
    /// All messages that have come. Only the kernel's: another process could send some, too.
    Batch read();

private:
    int fd_ = -1;
};

}  // namespace vgpu::daemon::sriov
