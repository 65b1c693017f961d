// SPDX-License-Identifier: MIT
#include "daemon/dbus/peer_credentials.h"

#include <unistd.h>
#include <chrono>
#include <cstdint>
#include <utility>

namespace vgpu::daemon::dbus {

namespace {

/// Short, because a working bus answers at once.
constexpr std::chrono::seconds kTimeout{2};

}  // namespace

PeerCredentials::PeerCredentials(Connect connect) : connect_(std::move(connect)) {
    open();
}

void PeerCredentials::open() {
    auto bus = connect_();
    bus_daemon_ = sdbus::createProxy(*bus, ServiceName{"org.freedesktop.DBus"},
                                     sdbus::ObjectPath{"/org/freedesktop/DBus"});
    activate(*bus_daemon_);
    bus_ = std::move(bus);
}

void PeerCredentials::close() {
    bus_daemon_.reset();
    bus_.reset();
}

uid_t PeerCredentials::ask(const std::string& sender) {
    if (!bus_) open();
    std::uint32_t user = 0;
    bus_daemon_->callMethod("GetConnectionUnixUser")
        .onInterface("org.freedesktop.DBus")
        .withTimeout(kTimeout)
        .withArguments(sender)
        .storeResultsTo(user);
    return user;
}

/// Uses a new connection after a failure, because the failure may last: messages of other programs
/// may have filled the queue of the connection, or the bus may have closed it.
uid_t PeerCredentials::ask_again_after_failure(const std::string& sender) {
    try {
        return ask(sender);
    } catch (const sdbus::Error& error) {
        if (error.getName() == "org.freedesktop.DBus.Error.NameHasNoOwner") throw;
    }
    close();
    return ask(sender);
}

Result<uid_t> PeerCredentials::user_of(const std::string& sender) {
    if (const auto at = known_.find(sender); at != known_.end()) return at->second;
    try {
        const uid_t user = ask_again_after_failure(sender);
        if (known_.size() == kRemembered) known_.clear();
        known_[sender] = user;
        return user;
    } catch (const sdbus::Error& error) {
        return fail(ErrorId::NotAuthorized, "the caller is gone: " + error.getMessage());
    }
}

void PeerCredentials::discard_messages() {
    constexpr int kMaxAtOnce = 64;
    try {
        for (int i = 0; bus_ && i < kMaxAtOnce; ++i)
            if (!bus_->processPendingRequest()) return;
    } catch (const sdbus::Error&) {
        close();
    }
}

bool is_owner(uid_t user) {
    return user == 0 || user == ::geteuid();
}

}  // namespace vgpu::daemon::dbus
