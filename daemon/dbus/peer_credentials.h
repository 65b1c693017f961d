// SPDX-License-Identifier: MIT
//
// PeerCredentials: asks the bus for the uid of a connection, and remembers it for later calls. Uses
// a separate connection to the bus, because on the shared connection the answer would queue behind
// other messages. Other programs can send messages to this connection too; the main loop discards
// them. Runs only in the main loop.
#pragma once

#include "daemon/dbus/sdbus_compat.h"
#include "daemon/ports/result.h"

#include <sys/types.h>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace vgpu::daemon::dbus {

class PeerCredentials {
public:
    /// Maximum number of remembered names. One more name clears all of them.
    static constexpr std::size_t kRemembered = 1024;

    using Connect = std::function<std::unique_ptr<sdbus::IConnection>()>;

    /// `connect`: makes a new connection to vgpud's bus, or throws sdbus::Error.
    explicit PeerCredentials(Connect connect);

    /// The uid of the connection with the unique name `sender`. A remembered uid stays valid,
    /// because the bus never reuses a unique name. For a name that is not remembered, asks the bus
    /// and blocks for up to 4 s; NotAuthorized if the connection is closed or the bus does not
    /// answer. If the bus does not answer, asks once more over a new connection.
    Result<uid_t> user_of(const std::string& sender);

    /// The connection that the main loop must watch; null after a failure, until user_of() connects
    /// again. Call discard_messages() when there are messages.
    [[nodiscard]] const sdbus::IConnection* bus() const { return bus_.get(); }
    /// Discards the messages that have arrived, but only some of them at once.
    void discard_messages();

private:
    void open();
    void close();
    /// Asks the bus once. Throws sdbus::Error.
    [[nodiscard]] uid_t ask(const std::string& sender);
    [[nodiscard]] uid_t ask_again_after_failure(const std::string& sender);

    Connect connect_;
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> bus_daemon_;  ///< proxy of org.freedesktop.DBus
    std::map<std::string, uid_t> known_;         ///< by unique name
};

/// True if the user is root or vgpud's user. For buses and interfaces without polkit.
bool is_owner(uid_t user);

}  // namespace vgpu::daemon::dbus
