// SPDX-License-Identifier: MIT
//
// Callers finds the user of a unique bus name. It asks the bus once for each caller, over a
// separate connection: on the shared one the answer would queue behind all messages of others, and
// vgpud would have to read a whole flood of them at once. Used by admit(), OwnerAuthority and
// LogControlObject; main loop only.
#pragma once

#include "daemon/dbus/sdbus_compat.h"
#include "daemon/ports/result.h"

#include <sys/types.h>
#include <map>
#include <memory>
#include <string>

namespace vgpu::daemon::dbus {

class Callers {
public:
    static constexpr std::size_t kRemembered = 1024;

    /// `bus` is a second connection to the bus on which vgpud serves.
    explicit Callers(std::unique_ptr<sdbus::IConnection> bus);

    /// NotAuthorized if the caller has gone. Takes one round trip to the bus for a new caller. The
    /// result is kept: a bus never reuses a unique name, and a connection keeps its user.
    Result<uid_t> user_of(const std::string& sender);

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> bus_itself_;
    std::map<std::string, uid_t> known_;  ///< by unique name
};

/// True for root and vgpud's user, for buses and interfaces without polkit.
bool is_owner(uid_t user);

}  // namespace vgpu::daemon::dbus
