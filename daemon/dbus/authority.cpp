// SPDX-License-Identifier: MIT
#include "daemon/dbus/authority.h"

#include <fmt/format.h>
#include <chrono>
#include <cstdint>
#include <map>

namespace vgpu::daemon::dbus {

namespace {

/// The timeout is long, because a person may have to type a password.
constexpr std::chrono::seconds kInteractionTimeout{120};
/// Flag of CheckAuthorization: polkit may ask for a password.
constexpr std::uint32_t kAllowInteraction = 1;

using Details = std::map<std::string, std::string>;

Result<> denied(const std::string& action, const std::string& why) {
    return fail(ErrorId::NotAuthorized, fmt::format("{}: {}", action, why));
}

std::unique_ptr<sdbus::IProxy> proxy_of(sdbus::IConnection& bus, const char* service,
                                        const char* path) {
    auto proxy = sdbus::createProxy(bus, ServiceName{service}, sdbus::ObjectPath{path});
    activate(*proxy);
    return proxy;
}

}  // namespace

PolkitAuthority::PolkitAuthority(sdbus::IConnection& bus)
    : polkit_(
          proxy_of(bus, "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority")) {}

void PolkitAuthority::check(const std::string& sender, const std::string& action, Done done) {
    using Facts = std::map<std::string, sdbus::Variant>;
    const sdbus::Struct<std::string, Facts> subject{"system-bus-name",
                                                    Facts{{"name", sdbus::Variant{sender}}}};
    // members of the answer: is_authorized, is_challenge (a password is needed), details
    polkit_->callMethodAsync("CheckAuthorization")
        .onInterface("org.freedesktop.PolicyKit1.Authority")
        .withTimeout(kInteractionTimeout)
        .withArguments(subject, action, Details{}, kAllowInteraction, std::string{})
        .uponReplyInvoke([action, done = std::move(done)](
                             CallError error, const sdbus::Struct<bool, bool, Details>& answer) {
            if (error)
                done(denied(action, "polkit does not answer: " + error->getMessage()));
            else if (std::get<0>(answer))
                done({});
            else
                done(denied(action, "polkit denies it"));
        });
}

void OwnerAuthority::check(const std::string& sender, const std::string& action, Done done) {
    const auto user = peer_credentials_.user_of(sender);
    if (!user) return done(denied(action, user.error().cause));
    if (is_owner(*user)) return done({});
    done(denied(action, fmt::format("uid {} is neither root nor the user of vgpud, and vgpud runs "
                                    "without polkit",
                                    *user)));
}

}  // namespace vgpu::daemon::dbus
