// SPDX-License-Identifier: MIT
//
// number_in(): parses a text that is a number and nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace vgpu::text {

/// The number if all of `text` is a number (as std::from_chars reads it) that fits the type, else
/// none. `base`: only for whole numbers; 10 by default.
template <typename Number, typename... Base>
std::optional<Number> number_in(std::string_view text, Base... base) {
    Number number{};
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number, base...);
    if (error != std::errc{} || end != last) return {};
    return number;
}

}  // namespace vgpu::text
