// SPDX-License-Identifier: MIT
//
// Options that are numbers. A value that is not a number is refused here and quoted in the error. A
// number for vgpud is passed on unchanged, even if negative: only vgpud knows its range. A number
// for vgpuctl is checked here (whole_within()).
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Adds an option that stores a whole number, decimal or 0x…, in `to`.
/// `to` must outlive the parsing.
CLI::Option* add_whole(CLI::App& command, const std::string& name, std::optional<Value>& to,
                       const std::string& help);
/// The same for a number with or without a fraction; one without is stored as a whole number, which
/// vgpud accepts for both.
CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);
/// The same for bytes with or without a unit (text/size.h).
CLI::Option* add_size(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);

/// A check for CLI::Option::transform(): a whole decimal number in this range.
CLI::Validator whole_within(std::uint64_t least, std::uint64_t most);

}  // namespace vgpu::cli
