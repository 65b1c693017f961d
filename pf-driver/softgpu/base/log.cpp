// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/base/log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace vgpu::softgpu::log {

static_assert(static_cast<int>(Level::error) == spdlog::level::err);

void write(Level level, fmt::string_view format, fmt::format_args arguments) {
    spdlog::logger& logger = *spdlog::default_logger_raw();
    const auto number = static_cast<spdlog::level::level_enum>(level);
    if (logger.should_log(number)) logger.log(number, fmt::vformat(format, arguments));
}

}  // namespace vgpu::softgpu::log
