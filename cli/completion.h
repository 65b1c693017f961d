// SPDX-License-Identifier: MIT
//
// Scripts for completion, made from vgpuctl's own table of verbs and options when the project is
// built (`vgpuctl --completion bash`), so that they know what --help knows. Targets are asked of
// vgpud each time: `vgpuctl list --targets`, with a limit of 2 s and nothing said if vgpud is not
// there. Pure; called by app.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

enum class Shell { Bash, Zsh };

/// A whole script with its newline. Text is quoted for the shell, so descriptions may have quotes,
/// brackets and colons in them. tests/golden/vgpuctl hold what comes out.
[[nodiscard]] std::string completion_script(const CLI::App& app, Shell shell);

}  // namespace vgpu::cli
