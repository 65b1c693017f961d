// SPDX-License-Identifier: MIT
//
// LogControl: LogPort over spdlog's default logger, which main.cpp and nobody else writes to. A
// level that spdlog does not have counts as its next neighbour (notice is info), but reads back as
// it was set. One thread.
#pragma once

#include "daemon/ports/log_port.h"

namespace vgpu::daemon::adapters {

class LogControl final : public LogPort {
public:
    /// Begins on the console. `level` is a word of set_level() or of vgpud --log-level.
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
