// SPDX-License-Identifier: MIT
//
// LogControl: implements LogPort with spdlog's default logger. A level that spdlog lacks is mapped
// to its neighbour (notice to info), but level() returns the level that was set. Runs in one
// thread.
#pragma once

#include "daemon/ports/log_port.h"

namespace vgpu::daemon::adapters {

class LogControl final : public LogPort {
public:
    /// Logs to the console at first. `level`: a word of set_level() or of vgpud --log-level.
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
