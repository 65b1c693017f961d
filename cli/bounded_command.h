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

/// Standard output of `command` (searched in PATH); empty if it cannot be started, fails, prints 64
/// KiB or more, or takes longer than `limit`.
/// `command` is the program and its arguments; no shell is involved. It reads /dev/null, and its
/// standard error is discarded. Waits for the program to end; does not kill its children.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command,
                                                   std::chrono::milliseconds limit);

}  // namespace vgpu::cli
