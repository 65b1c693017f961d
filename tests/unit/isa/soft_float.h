// SPDX-License-Identifier: MIT
//
// Binary floating point of any width on integers: the independent model for half, single and double
// precision. A value is unpacked into a __float128, which holds all sums and products of these
// formats that the tests need, and packed again with one rounding. Nothing here depends on the
// host's rounding or denormal mode.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace vgpu::test {

using Quad = __float128;

enum class Rounding : std::uint8_t { Nearest, Up, Down, Zero };

/// An interchange format: bits of the mantissa, without the hidden one, and of the exponent.
struct FloatFormat {
    int mantissa;
    int exponent;
    [[nodiscard]] constexpr int bias() const { return (1 << (exponent - 1)) - 1; }
    [[nodiscard]] constexpr std::uint64_t sign() const {
        return std::uint64_t{1} << (mantissa + exponent);
    }
    [[nodiscard]] constexpr std::uint64_t infinity() const {
        return ((std::uint64_t{1} << exponent) - 1) << mantissa;
    }
    [[nodiscard]] constexpr std::uint64_t quiet() const {
        return infinity() | (std::uint64_t{1} << (mantissa - 1));
    }
    [[nodiscard]] constexpr bool is_nan(std::uint64_t bits) const {
        return (bits & ~sign() & (sign() | (sign() - 1))) > infinity();
    }
    [[nodiscard]] constexpr bool is_infinite(std::uint64_t bits) const {
        return (bits & (sign() - 1)) == infinity();
    }
    [[nodiscard]] constexpr bool is_denormal(std::uint64_t bits) const {
        return (bits & infinity()) == 0 && (bits & (sign() - 1)) != 0;
    }
    /// Denormals become zeros of their sign.
    [[nodiscard]] constexpr std::uint64_t flushed(std::uint64_t bits) const {
        return is_denormal(bits) ? bits & sign() : bits;
    }
};
inline constexpr FloatFormat kHalf{10, 5}, kSingle{23, 8}, kDouble{52, 11};

/// 2^n without tables or modes.
inline Quad power_of_two(int n) {
    constexpr int bias = 16383, mantissa_high = 48;
    const std::uint64_t words[2] = {0, static_cast<std::uint64_t>(n + bias) << mantissa_high};
    Quad out;
    std::memcpy(&out, words, sizeof out);
    return out;
}

inline bool is_negative(Quad x) {
    std::uint64_t words[2];
    std::memcpy(words, &x, sizeof x);
    return (words[1] >> 63) != 0;
}

/// The exact value; infinities and NaNs as such.
inline Quad unpack(std::uint64_t bits, FloatFormat format) {
    const bool negative = (bits & format.sign()) != 0;
    const auto exponent = static_cast<int>((bits & (format.sign() - 1)) >> format.mantissa);
    const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa) - 1);
    Quad out;
    if (exponent == (1 << format.exponent) - 1) {
        const Quad infinity = static_cast<Quad>(__builtin_inf());
        out = mantissa == 0 ? infinity : static_cast<Quad>(__builtin_nan(""));
    } else {
        const std::uint64_t hidden = exponent == 0 ? 0 : std::uint64_t{1} << format.mantissa;
        const int scale = (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa;
        out = static_cast<Quad>(hidden | mantissa) * power_of_two(scale);
    }
    return negative ? -out : out;
}

/// Whether the magnitude is rounded away from zero: what is cut off, against half of a unit.
inline bool rounds_away(Rounding rounding, bool negative, bool odd, int against_half, bool exact) {
    if (exact) return false;
    switch (rounding) {
        case Rounding::Nearest:
            return against_half > 0 || (against_half == 0 && odd);
        case Rounding::Up:
            return !negative;
        case Rounding::Down:
            return negative;
        default:
            return false;
    }
}

/// Rounds once to the format.
inline std::uint64_t pack(Quad x, FloatFormat format, Rounding rounding = Rounding::Nearest) {
    using Wide = unsigned __int128;
    constexpr int quad_mantissa = 112, quad_bias = 16383, quad_infinity = 0x7fff;
    Wide bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    const bool negative = (bits >> 127) != 0;
    const std::uint64_t sign = negative ? format.sign() : 0;
    const int exponent =
        static_cast<int>(static_cast<std::uint64_t>(bits >> quad_mantissa) & 0x7fff);
    const Wide fraction = bits & ((Wide{1} << quad_mantissa) - 1);
    if (exponent == quad_infinity)
        return sign | (fraction == 0 ? format.infinity() : format.quiet());
    if (exponent == 0) return sign;  // far below every denormal of the formats, or zero
    const Wide whole = fraction | (Wide{1} << quad_mantissa);
    const int min = 1 - format.bias();
    const int real = exponent - quad_bias;
    const int used = real < min ? min : real;
    int drop = quad_mantissa - format.mantissa + (used - real);
    if (drop > quad_mantissa + 2) drop = quad_mantissa + 2;
    const Wide kept = whole >> drop;
    const Wide rest = whole & ((Wide{1} << drop) - 1);
    const Wide half = Wide{1} << (drop - 1);
    const int against_half = rest > half ? 1 : (rest == half ? 0 : -1);
    auto magnitude = static_cast<std::uint64_t>(kept);
    if (rounds_away(rounding, negative, (magnitude & 1) != 0, against_half, rest == 0)) ++magnitude;
    // A carry out of the mantissa raises the exponent by itself.
    const std::uint64_t hidden = std::uint64_t{1} << format.mantissa;
    std::uint64_t out = magnitude;
    if (magnitude >= hidden)
        out = (static_cast<std::uint64_t>(used + format.bias()) << format.mantissa) +
              (magnitude - hidden);
    if (used <= format.bias() && out < format.infinity()) return sign | out;
    const bool to_infinity = rounds_away(rounding, negative, true, 1, false);
    return sign | (to_infinity ? format.infinity() : format.infinity() - 1);
}

/// x + y such that a later rounding to fewer bits is right: what is lost makes the last bit odd.
inline Quad sum(Quad x, Quad y) {
    const Quad nearest = x + y;
    const Quad from_y = nearest - x;
    const Quad error = (x - (nearest - from_y)) + (y - from_y);
    const bool is_number = nearest - nearest == 0;
    if (!is_number || error == 0) return nearest;
    unsigned __int128 bits = 0;
    std::memcpy(&bits, &nearest, sizeof bits);
    if ((bits & 1) != 0) return nearest;
    bits = is_negative(error) == is_negative(nearest) ? bits + 1 : bits - 1;
    Quad out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

inline Quad half(std::uint64_t bits) {
    return unpack(bits & 0xffff, kHalf);
}
inline Quad single(std::uint64_t bits) {
    return unpack(bits & 0xffffffff, kSingle);
}
inline Quad twice(std::uint64_t bits) {
    return unpack(bits, kDouble);
}

}  // namespace vgpu::test
