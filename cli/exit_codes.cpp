// SPDX-License-Identifier: MIT
#include "cli/exit_codes.h"

#include "cli/format.h"

#include <fmt/format.h>
#include <array>

namespace vgpu::cli {

namespace {

/// In ascending order of the codes.
constexpr std::array kRows{ExitCodeRow{ExitCode::Ok, "ok"},
                           ExitCodeRow{ExitCode::Failed, "failed"},
                           ExitCodeRow{ExitCode::Usage, "usage"},
                           ExitCodeRow{ExitCode::NotFound, "not found"},
                           ExitCodeRow{ExitCode::NotAuthorized, "not authorised"},
                           ExitCodeRow{ExitCode::Unreachable, "vgpud not reachable"},
                           ExitCodeRow{ExitCode::NoCapacity, "no capacity"},
                           ExitCodeRow{ExitCode::Lost, "GPU or its PF driver lost"},
                           ExitCodeRow{ExitCode::ReadOnly, "state read-only"},
                           ExitCodeRow{ExitCode::Interrupted, "interrupted"}};

}  // namespace

std::span<const ExitCodeRow> exit_code_rows() {
    return kRows;
}

std::string exit_codes_text() {
    std::string text = "Exit codes:";
    for (const ExitCodeRow& row : kRows)
        text += fmt::format("{} {} {}", row.code == ExitCode::Ok ? "" : ",",
                            static_cast<int>(row.code), row.words);
    return wrapped_text(text + ".", 0);
}

}  // namespace vgpu::cli
