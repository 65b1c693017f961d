// SPDX-License-Identifier: MIT
#include "daemon/dbus/log_control_object.h"

#include <fmt/format.h>
#include <unistd.h>

namespace vgpu::daemon::dbus {

LogControlObject::LogControlObject(sdbus::IConnection& bus, LogPort& log)
    : AdaptorInterfaces(bus, sdbus::ObjectPath{"/org/freedesktop/LogControl1"}), log_(log) {
    registerAdaptor();
}

LogControlObject::~LogControlObject() {
    unregisterAdaptor();
}

void LogControlObject::check_caller() {
    const uid_t uid = current_sender_uid(getObject());
    if (uid == 0 || uid == ::geteuid()) return;
    throw to_dbus({ErrorId::NotAuthorized,
                   fmt::format("LogControl1: uid {} is neither root nor the user of vgpud", uid)});
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
