// SPDX-License-Identifier: MIT
//
// Generates the completion scripts from vgpuctl's table of verbs and options when the project is
// built (`vgpuctl --completion bash`), so that they offer what --help shows. The scripts ask vgpud
// for targets each time: `vgpuctl list --targets`, with a limit of 2 s and no message if vgpud does
// not answer. Pure; called by app.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

enum class Shell { Bash, Zsh };

/// A whole script with its newline. Text is quoted for the shell, so descriptions may contain
/// quotes, brackets and colons. tests/golden/vgpuctl holds the expected scripts.
[[nodiscard]] std::string completion_script(const CLI::App& app, Shell shell);

}  // namespace vgpu::cli
