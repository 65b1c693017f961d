// SPDX-License-Identifier: MIT
//
// Kinds of values: a number within bounds, a flag, one of a list of words, or a line of text. The
// fourth argument of each row of schemas/vf_settings.def is a kind. Only data; value_io.h reads and
// writes values of each kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

/// A whole number from `min` to `max`.
struct Whole {
    std::uint32_t min = 0, max = 0;
    bool takes_zero = false;  ///< true if 0 is valid as well and stands for a default
};
constexpr Whole whole(std::uint32_t min, std::uint32_t max) {
    return {.min = min, .max = max};
}
constexpr Whole whole_or_zero(std::uint32_t min, std::uint32_t max) {
    return {.min = min, .max = max, .takes_zero = true};
}

/// A number from `min` to `max`, which may have a fraction.
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

/// The word for one value of an enum.
template <typename Enum> struct Word {
    std::string_view name;
    Enum value;
};
// clang 14 does not deduce the arguments of an aggregate template without this guide
template <typename Enum> Word(std::string_view, Enum) -> Word<Enum>;
/// The words for the values of an enum; some values may have none.
template <typename Enum, std::size_t N> using Words = std::array<Word<Enum>, N>;

/// The word for `value`; "unknown" if there is none.
template <typename Enum, std::size_t N>
constexpr std::string_view name_among(const Words<Enum, N>& words, Enum value) {
    for (const Word<Enum>& word : words)
        if (word.value == value) return word.name;
    return "unknown";
}

}  // namespace vgpu::daemon
