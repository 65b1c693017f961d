// SPDX-License-Identifier: MIT
//
// Adds options with a number to a verb. The parser refuses a value that is not a number, and quotes
// the value in the error. Only whole_within() checks a range. vgpud checks the ranges of the other
// options, so add_whole() and add_real() accept even a negative number.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Adds an option for a whole number, decimal or hexadecimal ("0x…"). The parser stores the number
/// in `to`, as std::uint64_t or, if negative, as std::int64_t. `to` must outlive the parsing.
CLI::Option* add_whole(CLI::App& command, const std::string& name, std::optional<Value>& to,
                       const std::string& help);
/// Adds an option for a number with or without a fraction. A number without a fraction is stored as
/// a whole number, which vgpud accepts as well.
CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);
/// Adds an option for a number of bytes, with or without a unit (text/size.h). The parser stores
/// bytes, as std::uint64_t.
CLI::Option* add_size(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);

/// For CLI::Option::transform(): accepts a whole decimal number from `min` to `max`.
CLI::Validator whole_within(std::uint64_t min, std::uint64_t max);

}  // namespace vgpu::cli
