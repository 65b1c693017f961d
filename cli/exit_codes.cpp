// SPDX-License-Identifier: MIT
#include "cli/exit_codes.h"

#include <fmt/format.h>
#include <array>

namespace vgpu::cli {

namespace {

/// Scripts rely on the numbers (docs/dbus-api.md).
constexpr std::array kRows{ExitCodeRow{ExitCode::Ok, "ok"},
                           ExitCodeRow{ExitCode::Failed, "failed"},
                           ExitCodeRow{ExitCode::Usage, "usage"},
                           ExitCodeRow{ExitCode::NotFound, "not found"},
                           ExitCodeRow{ExitCode::NotAuthorized, "not authorised"},
                           ExitCodeRow{ExitCode::Unreachable, "vgpud not reachable"},
                           ExitCodeRow{ExitCode::NoCapacity, "no capacity"},
                           ExitCodeRow{ExitCode::Lost, "GPU or vgpu-pf lost"},
                           ExitCodeRow{ExitCode::ReadOnly, "state read-only"}};

}  // namespace

std::span<const ExitCodeRow> exit_code_rows() {
    return kRows;
}

std::string exit_codes_text() {
    constexpr std::size_t kColumns = 80;
    std::string text, line = "Exit codes:";
    for (const ExitCodeRow& row : kRows) {
        const bool is_last = row.code == kRows.back().code;
        const std::string item =
            fmt::format("{} {}{}", static_cast<int>(row.code), row.words, is_last ? "." : ",");
        if (line.size() + 1 + item.size() > kColumns) {
            text += line + "\n";
            line = item;
        } else {
            line += (line.empty() ? "" : " ") + item;
        }
    }
    return text + line;
}

}  // namespace vgpu::cli
