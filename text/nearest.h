// SPDX-License-Identifier: MIT
//
// What somebody probably meant who has mistyped a name. Pure functions, used where a verb, an
// option, a key or a target is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vgpu::text {

/// "; did you mean 'weight'?" if one of `known` is close to `word`, else "".
/// Close: two letters at most are wrong, or a third of them (Levenshtein).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace vgpu::text
