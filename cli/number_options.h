// SPDX-License-Identifier: MIT
//
// Number options. Values that are not numbers are refused and quoted. Numbers for vgpud are passed
// on, even negative: vgpud knows ranges. Numbers for vgpuctl: whole_within().
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// A whole number, decimal or 0x…; `to` must outlive the parsing.
CLI::Option* add_whole(CLI::App& command, const std::string& name, std::optional<Value>& to,
                       const std::string& help);
/// With or without a fraction; without one stored as whole, which vgpud accepts for both.
CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);
/// Bytes, with or without a unit (text/size.h).
CLI::Option* add_size(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help);

/// For CLI::Option::transform(): a whole decimal number in this range.
CLI::Validator whole_within(std::uint64_t least, std::uint64_t most);

}  // namespace vgpu::cli
