// SPDX-License-Identifier: MIT
//
// The manual page vgpuctl(1) as roff, generated from vgpuctl's table of verbs and options when the
// project is built (`vgpuctl --manual`). Pure; called by app.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vgpu::cli {

/// `app` must have all verbs described. The page has no date, so that builds are reproducible.
[[nodiscard]] std::string man_page(const CLI::App& app);

}  // namespace vgpu::cli
