// SPDX-License-Identifier: MIT
//
// PeerCredentials: asks the bus for the uid of a connection, and remembers it for later calls. Uses
// a separate connection to the bus, because on the shared connection the answer would queue behind
// other messages. Runs only in the main loop.
#pragma once

#include "daemon/dbus/sdbus_compat.h"
#include "daemon/ports/result.h"

#include <sys/types.h>
#include <map>
#include <memory>
#include <string>

namespace vgpu::daemon::dbus {

class PeerCredentials {
public:
    /// Maximum number of remembered names. One more name clears all of them.
    static constexpr std::size_t kRemembered = 1024;

    /// `bus`: a second connection to vgpud's bus.
    explicit PeerCredentials(std::unique_ptr<sdbus::IConnection> bus);

    /// The uid of the connection with the unique name `sender`. A remembered uid stays valid,
    /// because the bus never reuses a unique name. For a name that is not remembered, asks the bus
    /// and blocks for up to 2 s; NotAuthorized if the connection is closed or the bus does not
    /// answer.
    Result<uid_t> user_of(const std::string& sender);

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> bus_daemon_;  ///< proxy of org.freedesktop.DBus
    std::map<std::string, uid_t> known_;         ///< by unique name
};

/// True if the user is root or vgpud's user. For buses and interfaces without polkit.
bool is_owner(uid_t user);

}  // namespace vgpu::daemon::dbus
