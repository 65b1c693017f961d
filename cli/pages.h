// SPDX-License-Identifier: MIT
//
// Texts made from CommandTree, so that they agree: --help, manual page, completion scripts
// (`vgpuctl --manual`, `vgpuctl --completion bash`). Pure. `app` must have its verbs, on which
// Verb::describe() has been called.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

/// The help of vgpuctl or of a verb, at most 80 columns wide.
[[nodiscard]] std::string help_page(const CLI::App& app);
/// The page vgpuctl(1) in roff, without a date, so that builds are reproducible.
[[nodiscard]] std::string man_page(const CLI::App& app);
/// Scripts, quoted for the shell. Targets come from `vgpuctl list --targets`, which is
/// ended after 2 s and whose errors are dropped.
[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

}  // namespace vgpu::cli
