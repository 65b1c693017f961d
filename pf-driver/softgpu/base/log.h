// SPDX-License-Identifier: MIT
//
// The program's log. Each function formats a text with {fmt} and writes it to the sink that
// main.cpp sets up. Any thread may log. Only log.cpp, main.cpp and limited_sink.h include the
// logging library spdlog, because its templates add seconds to the compile time of each file.
#pragma once

#include <fmt/core.h>

namespace vgpu::softgpu::log {

/// The values are those of spdlog::level::level_enum.
enum class Level { debug = 1, info, warn, error };

/// Writes a line if the log's level permits `level`.
void write(Level level, fmt::string_view format, fmt::format_args arguments);

template <typename... Args> void debug(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::debug, format, fmt::make_format_args(args...));
}
template <typename... Args> void info(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::info, format, fmt::make_format_args(args...));
}
template <typename... Args> void warn(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::warn, format, fmt::make_format_args(args...));
}
template <typename... Args> void error(fmt::format_string<Args...> format, Args&&... args) {
    write(Level::error, format, fmt::make_format_args(args...));
}

}  // namespace vgpu::softgpu::log
