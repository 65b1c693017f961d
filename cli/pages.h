// SPDX-License-Identifier: MIT
//
// The texts that are made from vgpuctl's table of verbs and options (CommandTree), so that all of
// them offer the same: --help, the manual page, and the completion scripts. The build writes the
// last three to files (`vgpuctl --manual`, `vgpuctl --completion bash`). Pure; called by app.cpp
// with an application that has all its verbs described.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

/// The help of vgpuctl or of one of its verbs, at most 80 columns wide, in place of CLI11's own.
[[nodiscard]] std::string help_page(const CLI::App& app);
/// vgpuctl(1) as roff, without a date, so that builds are reproducible.
[[nodiscard]] std::string man_page(const CLI::App& app);
/// Whole scripts. They ask vgpud for targets each time: `vgpuctl list --targets`, with a limit of
/// 2 s and no message if vgpud does not answer. Text is quoted for the shell, so descriptions may
/// contain quotes, brackets and colons.
[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

}  // namespace vgpu::cli
