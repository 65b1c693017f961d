// SPDX-License-Identifier: MIT
#include "daemon/adapters/log_control.h"

#include <fmt/format.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>
#include <array>
#include <memory>
#include <string_view>

namespace vgpu::daemon::adapters {

namespace {

/// A word of syslog(3) and its level of spdlog. Several words may have the same level.
struct LevelRow {
    std::string_view word;
    spdlog::level::level_enum level;
};

constexpr std::array kLevels{
    LevelRow{"emerg", spdlog::level::critical}, LevelRow{"alert", spdlog::level::critical},
    LevelRow{"crit", spdlog::level::critical},  LevelRow{"err", spdlog::level::err},
    LevelRow{"warning", spdlog::level::warn},   LevelRow{"notice", spdlog::level::info},
    LevelRow{"info", spdlog::level::info},      LevelRow{"debug", spdlog::level::debug}};

spdlog::sink_ptr sink_for(std::string_view target) {
    if (target == "console") return std::make_shared<spdlog::sinks::stderr_sink_st>();
    if (target == "journal") return std::make_shared<spdlog::sinks::systemd_sink_st>("vgpud");
    if (target == "null") return std::make_shared<spdlog::sinks::null_sink_st>();
    return nullptr;
}

}  // namespace

LogControl::LogControl(const std::string& level) {
    static_cast<void>(set_target("console"));
    static_cast<void>(set_level(level == "error" ? "err" : level));
}

Result<> LogControl::set_level(const std::string& level) {
    for (const LevelRow& row : kLevels) {
        if (row.word != level) continue;
        spdlog::set_level(row.level);
        level_ = level;
        return {};
    }
    return fail(
        ErrorId::OutOfRange,
        fmt::format(
            "LogLevel '{}' is not one of emerg, alert, crit, err, warning, notice, info, debug",
            level.substr(0, 32)));
}

Result<> LogControl::set_target(const std::string& target) {
    spdlog::sink_ptr sink = sink_for(target);
    if (sink == nullptr)
        return fail(ErrorId::OutOfRange,
                    fmt::format("LogTarget '{}' is not one of console, journal, null",
                                target.substr(0, 32)));
    // keep the level, because a new logger begins with another one
    const auto level = spdlog::get_level();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("vgpud", std::move(sink)));
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    spdlog::set_level(level);
    target_ = target;
    return {};
}

}  // namespace vgpu::daemon::adapters
