// SPDX-License-Identifier: MIT
//
// The program's log: {fmt} texts at a level, to where main.cpp sends them. Any thread logs. The
// logging library stays in log.cpp, whose templates cost each file that includes them seconds.
#pragma once

#include <fmt/core.h>

namespace vgpu::softgpu::log {

enum class Level { debug, info, warn, error };

/// Writes `format` with `arguments` if lines of `level` are wanted.
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
