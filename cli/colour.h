// SPDX-License-Identifier: MIT
//
// Colour: words that should catch the eye, on a terminal and nowhere else. Whether it is wanted is
// decided once, by main.cpp through wants_colour(); verbs pass it on. Pure.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::cli {

/// Foreground colours of ECMA-48 (SGR 30 to 37), which a terminal's user may have changed.
enum class Colour { Plain, Green, Yellow, Red, Blue };

/// https://no-color.org: `no_color` (the variable's value; may be null) that is not empty says no.
/// So does a terminal that calls itself dumb.
/// A missing `term` (null) says no as well.
[[nodiscard]] bool wants_colour(bool is_terminal, const char* no_color, const char* term);

/// `text` in a colour, or as it is.
/// A painted text is longer than it looks: pad it before, not after.
[[nodiscard]] std::string painted(std::string_view text, Colour colour, bool is_wanted);

}  // namespace vgpu::cli
