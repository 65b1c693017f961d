// SPDX-License-Identifier: MIT
//
// Runs another program for its output, within a time limit, so that a program that hangs or never
// stops printing cannot hang vgpuctl. Used by the host collector.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Standard output of `command` (program in PATH, arguments; no shell); none if it cannot start,
/// fails, prints 64 KiB or more, or exceeds `limit`. Input and standard error are /dev/null. Waits
/// for the program's end; does not kill its children.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command,
                                                   std::chrono::milliseconds limit);

}  // namespace vgpu::cli
