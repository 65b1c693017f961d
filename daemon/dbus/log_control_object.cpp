// SPDX-License-Identifier: MIT
#include "daemon/dbus/log_control_object.h"

#include <fmt/format.h>

namespace vgpu::daemon::dbus {

LogControlObject::LogControlObject(sdbus::IConnection& bus, PeerCredentials& peer_credentials,
                                   LogPort& log)
    : AdaptorInterfaces(bus, sdbus::ObjectPath{"/org/freedesktop/LogControl1"}),
      peer_credentials_(peer_credentials),
      log_(log) {
    registerAdaptor();
}

LogControlObject::~LogControlObject() {
    unregisterAdaptor();
}

void LogControlObject::check_caller() {
    const auto user = peer_credentials_.user_of(current_sender(getObject()));
    if (!user) throw to_dbus(user.error());
    if (is_owner(*user)) return;
    throw to_dbus(
        {ErrorId::NotAuthorized,
         fmt::format("LogControl1: uid {} is neither root nor the user of vgpud", *user)});
}

void LogControlObject::LogLevel(const std::string& value) {
    check_caller();
    if (const auto set = log_.set_level(value); !set) throw to_dbus(set.error());
}

void LogControlObject::LogTarget(const std::string& value) {
    check_caller();
    if (const auto set = log_.set_target(value); !set) throw to_dbus(set.error());
}

}  // namespace vgpu::daemon::dbus
