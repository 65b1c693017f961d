// SPDX-License-Identifier: MIT
//
// LogControlObject: org.freedesktop.LogControl1 at its standard path, so that `systemctl
// service-log-level vgpud debug` works. Only root and vgpud's own user may write; that is checked
// here, since the bus library checks it on the system bus only. Made by main.cpp; main loop only.
#pragma once

#include "daemon/dbus/context.h"
#include "daemon/ports/log_port.h"

#include "vgpu1/log_control1_adaptor.h"

namespace vgpu::daemon::dbus {

/// Writing properties is the interface's own way, so there is no reply that could wait for polkit.
class LogControlObject final
    : public sdbus::AdaptorInterfaces<org::freedesktop::LogControl1_adaptor> {
public:
    LogControlObject(sdbus::IConnection& bus, Callers& callers, LogPort& log);
    ~LogControlObject();

private:
    std::string LogLevel() override { return log_.level(); }
    void LogLevel(const std::string& value) override;
    std::string LogTarget() override { return log_.target(); }
    void LogTarget(const std::string& value) override;
    std::string SyslogIdentifier() override { return "vgpud"; }

    /// Throws NotAuthorized.
    void check_caller();

    Callers& callers_;
    LogPort& log_;
};

}  // namespace vgpu::daemon::dbus
