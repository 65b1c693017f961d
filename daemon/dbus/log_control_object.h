// SPDX-License-Identifier: MIT
//
// LogControlObject: implements org.freedesktop.LogControl1, for `systemctl service-log-level vgpud
// debug`. Only root and vgpud's user may write its properties. check_caller() enforces this,
// because the bus library restricts writes only on the system bus. Runs only in the main loop.
#pragma once

#include "daemon/dbus/context.h"
#include "daemon/ports/log_port.h"

#include "vgpu1/log_control1_adaptor.h"

namespace vgpu::daemon::dbus {

/// Writes do not ask polkit: polkit may answer minutes later, but a property setter must reply
/// before it returns.
class LogControlObject final
    : public sdbus::AdaptorInterfaces<org::freedesktop::LogControl1_adaptor> {
public:
    LogControlObject(sdbus::IConnection& bus, PeerCredentials& peer_credentials, LogPort& log);
    ~LogControlObject();

private:
    std::string LogLevel() override { return log_.level(); }
    void LogLevel(const std::string& value) override;
    std::string LogTarget() override { return log_.target(); }
    void LogTarget(const std::string& value) override;
    std::string SyslogIdentifier() override { return "vgpud"; }

    /// Throws NotAuthorized unless the caller is root or vgpud's user.
    void check_caller();

    PeerCredentials& peer_credentials_;
    LogPort& log_;
};

}  // namespace vgpu::daemon::dbus
