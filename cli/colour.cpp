// SPDX-License-Identifier: MIT
#include "cli/colour.h"

#include <fmt/format.h>
#include <array>

namespace vgpu::cli {

bool may_use_colour(bool is_terminal, const char* no_color, const char* term) {
    if (!is_terminal || (no_color != nullptr && *no_color != '\0')) return false;
    return term != nullptr && std::string_view(term) != "dumb";
}

std::string painted(std::string_view text, Colour colour, bool is_enabled) {
    // SGR parameters (ECMA-48), in the order of Colour
    constexpr std::array<int, 5> kCodes{0, 32, 33, 31, 34};
    if (!is_enabled || colour == Colour::Plain) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", kCodes.at(static_cast<std::size_t>(colour)), text);
}

}  // namespace vgpu::cli
