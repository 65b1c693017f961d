// SPDX-License-Identifier: MIT
//
// Options that are numbers. What is no number is refused here, in the words that were typed. A
// number of vgpud's is passed on as it is, also a negative one: vgpud alone knows the range and
// names it. A number of vgpuctl's own has its range here.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Adds an option whose whole number, decimal or 0x…, comes to `to`.
/// `to` must outlive the parsing.
CLI::Option* add_whole(CLI::App& command, const std::string& name, std::optional<Value>& to,
                       const std::string& help);
/// The same of a number with or without a fraction; one without is put as a whole one, which vgpud
/// takes in both places.
CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);

/// A check for CLI::Option::transform(): a whole decimal number in this range.
CLI::Validator whole_within(std::uint64_t least, std::uint64_t most);

}  // namespace vgpu::cli
