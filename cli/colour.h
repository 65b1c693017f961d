// SPDX-License-Identifier: MIT
//
// Colours on terminals. main.cpp decides once whether to use them. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::cli {

enum class Colour { Plain, Green, Yellow, Red, Blue };

/// True if output goes to a terminal, `no_color` is null or empty (https://no-color.org), and
/// `term` is neither null nor "dumb".
[[nodiscard]] bool may_use_colour(bool is_terminal, const char* no_color, const char* term);

/// The text, in colour if `is_enabled`. Callers must pad the text first, because the added escapes
/// count as characters but take no columns.
[[nodiscard]] std::string painted(std::string_view text, Colour colour, bool is_enabled);

}  // namespace vgpu::cli
