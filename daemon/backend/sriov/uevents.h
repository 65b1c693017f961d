// SPDX-License-Identifier: MIT
//
// Uevents: the kernel's messages that a PCI function has appeared, vanished or changed its driver,
// from a netlink socket. The kernel sends these messages to all network namespaces, even to the
// namespace of a service with PrivateNetwork=, which udev's copies do not reach. A message means
// only that the state must be read again. The kernel sends the message before it stores the new
// number of VFs, and sends no message for the PF when VFs are disabled. Runs in one thread.
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
    std::string driver;   ///< the bound driver; may be empty

    bool operator==(const Uevent&) const = default;
};

/// Reads a message, which consists of "add@/devices/…" and KEY=VALUE pairs, each ended by a zero
/// byte. None for subsystems other than pci and for malformed messages.
[[nodiscard]] std::optional<Uevent> parse_uevent(std::string_view message);

/// True if the function at `address` got or lost a driver. A PF has then lost all its values.
[[nodiscard]] bool changes_driver_of(const Uevent& event, std::string_view address);

class UeventSocket {
public:
    UeventSocket() = default;
    ~UeventSocket() { close(); }
    UeventSocket(const UeventSocket&) = delete;
    UeventSocket& operator=(const UeventSocket&) = delete;

    /// System if netlink is not allowed; the caller then only polls, once a second.
    Result<> open();
    void close();
    /// Readable when there are messages; -1 if the socket is not open.
    [[nodiscard]] int fd() const { return fd_; }

    struct Batch {
        std::vector<Uevent> events{};
        bool has_lost = false;  ///< true if the socket overflowed: read everything again
    };
    /// Reads all pending messages of the kernel. Ignores messages of processes.
    Batch read();

private:
    int fd_ = -1;
};

}  // namespace vgpu::daemon::sriov
