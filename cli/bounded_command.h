// SPDX-License-Identifier: MIT
//
// Runs another program for its output, within a time limit. A program that hangs, or never stops
// printing, therefore cannot hang vgpuctl. Used by the host collector.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Standard output of `command` (program in PATH, arguments; no shell). None if it cannot start,
/// fails, prints 64 KiB or more, or exceeds `limit`. Its input and standard error are /dev/null.
/// Waits for the end of the program; does not kill its children.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command,
                                                   std::chrono::milliseconds limit);

}  // namespace vgpu::cli
