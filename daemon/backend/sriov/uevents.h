// SPDX-License-Identifier: MIT
//
// UeventSocket: receives the kernel's uevents (netlink messages) about PCI functions: a function
// has appeared, vanished or changed its driver. The kernel sends uevents to all network namespaces,
// so they also reach a service with PrivateNetwork=; udev's copies do not. A uevent means only that
// the state must be read again: the kernel sends the uevent before it stores the new number of VFs,
// and sends no uevent for the PF when VFs are disabled. Only the GPU's thread calls a UeventSocket.
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

/// Parses a message, which consists of "add@/devices/…" and KEY=VALUE pairs, each ended by a zero
/// byte. None for subsystems other than pci and for malformed messages.
[[nodiscard]] std::optional<Uevent> parse_uevent(std::string_view message);

/// True if the function at `address` got or lost a driver. If the function is a PF, all values that
/// vgpud wrote are then lost.
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
