// SPDX-License-Identifier: MIT
//
// Callers: whose connection a unique bus name is. Asks the bus over a connection of its own, once
// for each caller: on the shared one the answer would stand behind all that others have sent, and
// reading as far as that would take in a flood at once. Used by authorized(), OwnerAuthority and
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

    /// `bus` is another connection to the bus that is served.
    explicit Callers(std::unique_ptr<sdbus::IConnection> bus);

    /// NotAuthorized if the caller has gone. One round trip to the bus for a caller that is new: a
    /// bus never gives a unique name to another connection, and a connection keeps its user.
    Result<uid_t> user_of(const std::string& sender);

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> bus_itself_;
    std::map<std::string, uid_t> known_;  ///< by unique name
};

/// Root, and whoever vgpud runs as: for buses and interfaces that polkit does not decide about.
bool is_owner(uid_t user);

}  // namespace vgpu::daemon::dbus
