// SPDX-License-Identifier: MIT
//
// LogPort: changes level and target of vgpud's log at run time. Levels and targets have the names
// that systemd defines for org.freedesktop.LogControl1. Implemented by adapters/log_control. Used
// in the main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon {

class LogPort {
public:
    virtual ~LogPort() = default;

    /// One of: emerg, alert, crit, err, warning, notice, info, debug.
    [[nodiscard]] virtual std::string level() const = 0;
    /// Fails with OutOfRange for an unknown level, and names the known levels.
    virtual Result<> set_level(const std::string& level) = 0;
    /// One of: console, journal, null.
    [[nodiscard]] virtual std::string target() const = 0;
    /// Fails with OutOfRange for an unknown target, and names the known targets.
    virtual Result<> set_target(const std::string& target) = 0;
};

}  // namespace vgpu::daemon
