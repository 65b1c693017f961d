// SPDX-License-Identifier: MIT
//
// PeerCredentials: finds the user of a unique bus name, and remembers the user for later calls.
// Uses a separate connection, because on the shared connection the answer would queue behind other
// messages. Runs only in the main loop.
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
    /// Maximum number of remembered names. A further name clears all earlier ones.
    static constexpr std::size_t kRemembered = 1024;

    /// `bus`: a second connection to vgpud's bus.
    explicit PeerCredentials(std::unique_ptr<sdbus::IConnection> bus);

    /// NotAuthorized if the caller is gone or the bus does not answer. Makes one round trip to the
    /// bus per new caller; the bus never reuses a unique name.
    Result<uid_t> user_of(const std::string& sender);

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> bus_daemon_;  ///< proxy of org.freedesktop.DBus
    std::map<std::string, uid_t> known_;         ///< by unique name
};

/// True if the user is root or vgpud's user. Used for buses and interfaces without polkit.
bool is_owner(uid_t user);

}  // namespace vgpu::daemon::dbus
