// SPDX-License-Identifier: MIT
//
// Colours for words that should stand out, only on a terminal. main.cpp decides once, through
// wants_colour(), whether to use them; verbs pass the decision on. Pure.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::cli {

/// Foreground colours of ECMA-48 (SGR 30 to 37); a terminal's user may have changed them.
enum class Colour { Plain, Green, Yellow, Red, Blue };

/// False if `no_color` (the variable's value; may be null) is not empty (https://no-color.org), or
/// if `term` is "dumb" or null.
[[nodiscard]] bool wants_colour(bool is_terminal, const char* no_color, const char* term);

/// `text` in a colour if `is_wanted`, else unchanged.
/// The escapes make a painted text longer than it looks: pad before painting, not after.
[[nodiscard]] std::string painted(std::string_view text, Colour colour, bool is_wanted);

}  // namespace vgpu::cli
