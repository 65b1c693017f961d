// SPDX-License-Identifier: MIT
//
// LogControl: implements LogPort, which changes level and target of the log, with spdlog's default
// logger. spdlog lacks some levels of syslog, so LogControl maps these to other levels (notice to
// info, emerg to critical), but level() returns the level that was set. Used in the main loop only.
#pragma once

#include "daemon/ports/log_port.h"

namespace vgpu::daemon::adapters {

class LogControl final : public LogPort {
public:
    /// Logs to the console at first. `level`: a level of set_level(), or "error", which means err.
    /// Another word leaves the level at info.
    explicit LogControl(const std::string& level);

    [[nodiscard]] std::string level() const override { return level_; }
    Result<> set_level(const std::string& level) override;
    [[nodiscard]] std::string target() const override { return target_; }
    Result<> set_target(const std::string& target) override;

private:
    std::string level_ = "info";
    std::string target_;
};

}  // namespace vgpu::daemon::adapters
