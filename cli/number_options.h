// SPDX-License-Identifier: MIT
//
// Number options. A value that is not a number is refused and quoted. A number whose range vgpud
// checks is passed on, even if it is negative. Ranges that vgpuctl checks use whole_within().
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Adds an option for a whole number, decimal or 0x…. `to` must outlive the parsing.
CLI::Option* add_whole(CLI::App& command, const std::string& name, std::optional<Value>& to,
                       const std::string& help);
/// Adds an option for a number with or without a fraction. A number without a fraction is stored as
/// a whole number, which vgpud accepts as well.
CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);
/// Adds an option for a number of bytes, with or without a unit (text/size.h).
CLI::Option* add_size(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);

/// For CLI::Option::transform(): accepts a whole decimal number in this range.
CLI::Validator whole_within(std::uint64_t min, std::uint64_t max);

}  // namespace vgpu::cli
