// SPDX-License-Identifier: MIT
//
// The program's log: {fmt} texts at a level, written to the sink that main.cpp sets up. Any thread
// may log. Only log.cpp and main.cpp (with limited_sink.h) include the logging library, whose
// templates cost each file that includes them seconds of compile time.
#pragma once

#include <fmt/core.h>

namespace vgpu::softgpu::log {

/// The values are the logging library's (spdlog).
enum class Level { debug = 1, info, warn, error };

/// Writes `format` with `arguments` if the log's level admits `level`.
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
