// SPDX-License-Identifier: MIT
//
// Authority: decides whether a caller may do an action. Asks polkit about the bus name (never about
// a pid), with interaction. Without polkit only root and vgpud's user are allowed. The action is
// refused if polkit does not answer or fails, or if the caller has left the bus. Runs in the main
// loop, where it also calls `done`.
#pragma once

#include "daemon/dbus/peer_credentials.h"
#include "daemon/dbus/sdbus_compat.h"
#include "daemon/ports/result.h"

#include <functional>
#include <memory>
#include <string>

namespace vgpu::daemon::dbus {

/// polkit actions; daemon/data/org.vgpu1.policy describes them.
inline constexpr const char* kProvisionAction = "org.vgpu1.provision";
inline constexpr const char* kAssignAction = "org.vgpu1.assign";
inline constexpr const char* kControlAction = "org.vgpu1.control";

/// check() calls `done` once, with {} or NotAuthorized, but not after the bus has been closed.
class Authority {
public:
    using Done = std::function<void(Result<>)>;

    virtual ~Authority() = default;
    /// Does not wait for polkit, but may wait for the bus, as PeerCredentials does.
    virtual void check(const std::string& sender, const std::string& action, Done done) = 0;
};

/// Asks polkit. An answer may take two minutes, while a person types a password.
class PolkitAuthority final : public Authority {
public:
    explicit PolkitAuthority(sdbus::IConnection& bus);
    void check(const std::string& sender, const std::string& action, Done done) override;

private:
    std::unique_ptr<sdbus::IProxy> polkit_;
};

/// For buses without polkit: allows uid 0 and the uid of this process. Answers within the call.
class OwnerAuthority final : public Authority {
public:
    explicit OwnerAuthority(PeerCredentials& peer_credentials)
        : peer_credentials_(peer_credentials) {}
    void check(const std::string& sender, const std::string& action, Done done) override;

private:
    PeerCredentials& peer_credentials_;
};

}  // namespace vgpu::daemon::dbus
