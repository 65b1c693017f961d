// SPDX-License-Identifier: MIT
//
// Suggests the name that a mistyped one probably means. Used in errors about an unknown verb,
// option, key or target. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vgpu::text {

/// "; did you mean 'weight'?" if one of `known` is close to `word`, else "".
/// Close: Levenshtein distance <= max(2, letters of `word` / 3).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace vgpu::text
