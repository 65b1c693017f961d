// SPDX-License-Identifier: MIT
//
// The texts of --help, the manual page (`vgpuctl --manual`) and the completion scripts (`vgpuctl
// --completion bash`). All come from CommandTree, so that they agree. `app` must have the options
// that Verb::describe() adds. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

/// The help of `app`, which is vgpuctl or one verb, at most 80 columns wide.
[[nodiscard]] std::string help_page(const CLI::App& app);
/// The page vgpuctl(1) in roff, without a date, so that builds are reproducible.
[[nodiscard]] std::string man_page(const CLI::App& app);
/// Completion scripts. The script for bash has only names and choices, which need no escapes. The
/// script for zsh also has descriptions, with escapes. To complete a target, both scripts run
/// `vgpuctl list --targets`. They end this command after 2 s and drop its errors.
[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

}  // namespace vgpu::cli
