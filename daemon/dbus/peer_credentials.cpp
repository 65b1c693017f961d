// SPDX-License-Identifier: MIT
#include "daemon/dbus/peer_credentials.h"

#include <unistd.h>
#include <chrono>
#include <cstdint>

namespace vgpu::daemon::dbus {

namespace {

/// Short, because a working bus answers at once.
constexpr std::chrono::seconds kTimeout{2};

}  // namespace

PeerCredentials::PeerCredentials(std::unique_ptr<sdbus::IConnection> bus)
    : bus_(std::move(bus)),
      bus_daemon_(sdbus::createProxy(*bus_, ServiceName{"org.freedesktop.DBus"},
                                     sdbus::ObjectPath{"/org/freedesktop/DBus"})) {
    activate(*bus_daemon_);
}

Result<uid_t> PeerCredentials::user_of(const std::string& sender) {
    if (const auto at = known_.find(sender); at != known_.end()) return at->second;
    try {
        std::uint32_t user = 0;
        bus_daemon_->callMethod("GetConnectionUnixUser")
            .onInterface("org.freedesktop.DBus")
            .withTimeout(kTimeout)
            .withArguments(sender)
            .storeResultsTo(user);
        if (known_.size() == kRemembered) known_.clear();
        known_[sender] = user;
        return user;
    } catch (const sdbus::Error& error) {
        return fail(ErrorId::NotAuthorized, "the caller is gone: " + error.getMessage());
    }
}

bool is_owner(uid_t user) {
    return user == 0 || user == ::geteuid();
}

}  // namespace vgpu::daemon::dbus
