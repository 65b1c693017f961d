// SPDX-License-Identifier: MIT
//
// Runs another program for what it says, within a time: a program that hangs is killed, one that
// talks without end is cut. Used by the host collector.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Standard output of `command` (looked for in PATH), at most 64 KiB of it; nothing if it cannot be
/// started, fails, or is not done in `limit`.
/// `command` is the program and its arguments; no shell is involved. It reads /dev/null, and what
/// it says on standard error is lost. Waits until the program has ended; only that one is killed,
/// not what it started.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command,
                                                   std::chrono::milliseconds limit);

}  // namespace vgpu::cli
