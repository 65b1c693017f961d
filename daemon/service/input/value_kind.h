// SPDX-License-Identifier: MIT
//
// Kinds of values, for the fourth column of schemas/vf_settings.def: a number within bounds, a
// flag, one of a list of words, or a line of text. Only data; value_io.h reads and writes values
// of each kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

/// A whole number.
struct Whole {
    std::uint32_t min = 0, max = 0;
    bool takes_zero = false;  ///< true if 0, too, is valid and stands for a default
};
constexpr Whole whole(std::uint32_t min, std::uint32_t max) {
    return {.min = min, .max = max};
}
constexpr Whole whole_or_zero(std::uint32_t min, std::uint32_t max) {
    return {.min = min, .max = max, .takes_zero = true};
}

/// A number that may have a fraction.
struct Real {
    double min = 0, max = 0;
};
constexpr Real real(double min, double max) {
    return {.min = min, .max = max};
}

/// Yes or no.
struct Flag {};
inline constexpr Flag kFlag{};

/// One line of text for people, in UTF-8; may be empty.
struct Line {
    std::size_t max_bytes = 0;
};
constexpr Line line(std::size_t max_bytes) {
    return {.max_bytes = max_bytes};
}

/// A word for a value of an enum.
template <typename Enum> struct Word {
    std::string_view name;
    Enum value;
};
template <typename Enum> Word(std::string_view, Enum) -> Word<Enum>;  // for clang 14
template <typename Enum, std::size_t N> using Words = std::array<Word<Enum>, N>;

/// The word for `value`; "unknown" if there is none.
template <typename Enum, std::size_t N>
constexpr std::string_view name_among(const Words<Enum, N>& words, Enum value) {
    for (const Word<Enum>& word : words)
        if (word.value == value) return word.name;
    return "unknown";
}

}  // namespace vgpu::daemon
