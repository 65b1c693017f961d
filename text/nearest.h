// SPDX-License-Identifier: MIT
//
// Suggests a known name for a mistyped name, for errors about an unknown verb, option, key or
// target. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vgpu::text {

/// Returns "; did you mean 'weight'?" with the name in `known` that is closest to `word`, or "" if
/// every name has a Levenshtein distance above max(2, word.size() / 3), in bytes.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace vgpu::text
