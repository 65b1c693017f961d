// SPDX-License-Identifier: MIT
//
// The manual page vgpuctl(1) as roff, made from vgpuctl's own table of verbs and options when the
// project is built (`vgpuctl --manual`). Pure; called by app.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

/// `app` with all verbs described. Carries no date, so that builds are reproducible.
[[nodiscard]] std::string man_page(const CLI::App& app);

}  // namespace vgpu::cli
