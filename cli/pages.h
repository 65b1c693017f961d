// SPDX-License-Identifier: MIT
//
// Texts made from CommandTree, so that all agree: --help, manual page, completion scripts (`vgpuctl
// --manual`, `vgpuctl --completion bash`). Pure; `app` must have all verbs described.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

/// For vgpuctl or a verb, at most 80 columns.
[[nodiscard]] std::string help_page(const CLI::App& app);
/// vgpuctl(1) in roff, without a date: reproducible.
[[nodiscard]] std::string man_page(const CLI::App& app);
/// Quoted for the shell. Targets come from `vgpuctl list --targets` (2 s, silent).
[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

}  // namespace vgpu::cli
