// SPDX-License-Identifier: MIT
//
// Uevents: the kernel's messages that a PCI function has appeared, vanished or changed its driver,
// from a netlink socket. The kernel sends them to all network namespaces, so they reach a service
// with PrivateNetwork=; udev's copies do not. A message means only that the state must be read
// again: the kernel sends it before the new count of VFs is stored, and disabling VFs sends nothing
// for the PF. Runs in one thread.
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

/// None for subsystems other than pci and for malformed messages. Format: "add@/devices/…", then
/// KEY=VALUE, each ended by a zero byte.
[[nodiscard]] std::optional<Uevent> parse_uevent(std::string_view message);

/// True if the function at `address` got or lost a driver. A PF has then lost all its values.
[[nodiscard]] bool is_other_driver(const Uevent& event, std::string_view address);

class UeventSocket {
public:
    UeventSocket() = default;
    ~UeventSocket() { close(); }
    UeventSocket(const UeventSocket&) = delete;
    UeventSocket& operator=(const UeventSocket&) = delete;

    /// System if netlink is not allowed; the caller then only polls, once a second.
    Result<> open();
    void close();
    /// Readable when there are messages; -1 if it is not open.
    [[nodiscard]] int fd() const { return fd_; }

    struct Batch {
        std::vector<Uevent> events{};
        bool has_lost = false;  ///< true if the socket overflowed: read everything again
    };
    /// Reads all pending messages of the kernel. Ignores messages of other processes.
    Batch read();

private:
    int fd_ = -1;
};

}  // namespace vgpu::daemon::sriov
