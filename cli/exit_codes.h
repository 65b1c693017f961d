// SPDX-License-Identifier: MIT
//
// Texts of the exit codes of vgpuctl, in one place for --help, the manual page and their tests. The
// codes are ExitCode in service.h.
#pragma once

#include "cli/service.h"

#include <span>
#include <string>
#include <string_view>

namespace vgpu::cli {

/// `words` are lower case, without a full stop.
struct ExitCodeRow {
    ExitCode code;
    std::string_view words;
};

/// All rows, in ascending order, from static storage.
std::span<const ExitCodeRow> exit_code_rows();

/// "Exit codes: 0 ok, 1 failed, …" in lines of at most 80 columns, with a newline.
std::string exit_codes_text();

}  // namespace vgpu::cli
