// SPDX-License-Identifier: MIT
//
// Suggests a known name for a mistyped name, in errors about an unknown verb, option, key or
// target. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vgpu::text {

/// "; did you mean 'weight'?" with the name of `known` that is closest to `word`. "" if the
/// Levenshtein distance in bytes to each name is above max(2, bytes of `word` / 3).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace vgpu::text
