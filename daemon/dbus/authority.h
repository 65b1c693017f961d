// SPDX-License-Identifier: MIT
//
// Authority: decides whether a D-Bus caller may do an action. PolkitAuthority asks polkit about the
// caller's bus name (never about a pid, which could be reused), and lets polkit ask the person for
// a password. OwnerAuthority, for buses without polkit, allows only root and vgpud's user. Both
// refuse the action if their question to polkit or to the bus fails. check() and its callback
// `done` run in the main loop.
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

class Authority {
public:
    /// Success means that the action is allowed. The only error is NotAuthorized.
    using Done = std::function<void(Result<>)>;

    virtual ~Authority() = default;
    /// Starts a check. `sender`: unique bus name of the caller. Calls `done` once, or never if the
    /// connection to the bus closes before polkit answers. PolkitAuthority does not block.
    /// OwnerAuthority may block, as PeerCredentials::user_of() does.
    virtual void check(const std::string& sender, const std::string& action, Done done) = 0;
};

/// Asks polkit. Waits up to two minutes for the answer, because a person may type a password.
class PolkitAuthority final : public Authority {
public:
    explicit PolkitAuthority(sdbus::IConnection& bus);
    void check(const std::string& sender, const std::string& action, Done done) override;

private:
    std::unique_ptr<sdbus::IProxy> polkit_;
};

/// For buses without polkit: allows uid 0 and the uid of this process. check() calls `done` before
/// it returns.
class OwnerAuthority final : public Authority {
public:
    explicit OwnerAuthority(PeerCredentials& peer_credentials)
        : peer_credentials_(peer_credentials) {}
    void check(const std::string& sender, const std::string& action, Done done) override;

private:
    PeerCredentials& peer_credentials_;
};

}  // namespace vgpu::daemon::dbus
