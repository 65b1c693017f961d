// SPDX-License-Identifier: MIT
//
// Texts of vgpuctl's exit codes (ExitCode in service.h), for --help, the manual page and tests.
#pragma once

#include "cli/service.h"

#include <span>
#include <string>
#include <string_view>

namespace vgpu::cli {

/// An exit code and its meaning. `words`: lower case, no full stop.
struct ExitCodeRow {
    ExitCode code;
    std::string_view words;
};

/// All exit codes, in ascending order.
std::span<const ExitCodeRow> exit_code_rows();

/// The text "Exit codes: 0 ok, 1 failed, …", at most 80 columns wide.
std::string exit_codes_text();

}  // namespace vgpu::cli
