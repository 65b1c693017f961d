// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/base/log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace vgpu::softgpu::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
    switch (level) {
        case Level::debug:
            return spdlog::level::debug;
        case Level::info:
            return spdlog::level::info;
        case Level::warn:
            return spdlog::level::warn;
        case Level::error:
            break;
    }
    return spdlog::level::err;
}

}  // namespace

void write(Level level, fmt::string_view format, fmt::format_args arguments) {
    spdlog::logger& logger = *spdlog::default_logger_raw();
    if (!logger.should_log(spdlog_level(level))) return;
    logger.log(spdlog_level(level), fmt::vformat(format, arguments));
}

}  // namespace vgpu::softgpu::log
