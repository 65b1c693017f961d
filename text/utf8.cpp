// SPDX-License-Identifier: MIT
#include "text/utf8.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace vgpu::text {

namespace {

/// One character of a text, or one byte that belongs to no character.
struct Letter {
    char32_t code = 0;  ///< Unicode code point
    std::size_t bytes = 1;
    bool is_valid = false;
};

/// kMin[n] is the smallest code that requires n bytes. A sequence of n bytes with a smaller code is
/// overlong, so it is invalid.
constexpr std::array<char32_t, 5> kMin{0, 0, 0x80, 0x800, 0x10000};

/// Decodes the first letter of `text` (RFC 3629). `text` must not be empty.
Letter first_letter(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80) return {.code = lead, .bytes = 1, .is_valid = true};
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
    auto code = static_cast<char32_t>(lead & (0x7fu >> bytes));
    for (std::size_t i = 1; i < bytes; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0u) != 0x80u) return {};
        code = code << 6 | (next & 0x3fu);
    }
    constexpr char32_t kSurrogates = 0xd800, kSurrogatesEnd = 0xe000, kMax = 0x10ffff;
    const bool is_surrogate = code >= kSurrogates && code < kSurrogatesEnd;
    if (code < kMin.at(bytes) || code > kMax || is_surrogate) return {};
    return {.code = code, .bytes = bytes, .is_valid = true};
}

struct Range {
    char32_t first, last;
};

/// `ranges`: in ascending order.
bool is_in(std::span<const Range> ranges, char32_t code) {
    const auto at = std::ranges::lower_bound(ranges, code, {}, &Range::last);
    return at != ranges.end() && at->first <= code;
}

/// C0, DEL, C1; directional marks, embeddings, overrides and isolates (Unicode, UAX 9); line and
/// paragraph separators; the byte order mark, interlinear annotation marks, U+FFFE and U+FFFF.
constexpr std::array kHarmful{Range{0x00, 0x1f},     Range{0x7f, 0x9f},     Range{0x61c, 0x61c},
                              Range{0x200e, 0x200f}, Range{0x2028, 0x202e}, Range{0x2066, 0x2069},
                              Range{0xfeff, 0xfeff}, Range{0xfff9, 0xfffb}, Range{0xfffe, 0xffff}};

/// Combining marks (Unicode, general categories Mn and Me), the zero width space, joiners,
/// modifiers of emoji, and the conjoining Hangul letters that share the columns of the previous
/// letter. Covers common scripts only.
constexpr std::array kZeroWidth{
    Range{0x300, 0x36f},   Range{0x483, 0x489},     Range{0x591, 0x5bd},    Range{0x5bf, 0x5bf},
    Range{0x5c1, 0x5c2},   Range{0x5c4, 0x5c5},     Range{0x5c7, 0x5c7},    Range{0x610, 0x61a},
    Range{0x64b, 0x65f},   Range{0x670, 0x670},     Range{0x6d6, 0x6dc},    Range{0x6df, 0x6e4},
    Range{0x6e7, 0x6e8},   Range{0x6ea, 0x6ed},     Range{0x711, 0x711},    Range{0x730, 0x74a},
    Range{0x900, 0x902},   Range{0x93a, 0x93a},     Range{0x93c, 0x93c},    Range{0x941, 0x948},
    Range{0x94d, 0x94d},   Range{0x951, 0x957},     Range{0x981, 0x981},    Range{0x9bc, 0x9bc},
    Range{0x9c1, 0x9c4},   Range{0x9cd, 0x9cd},     Range{0xe31, 0xe31},    Range{0xe34, 0xe3a},
    Range{0xe47, 0xe4e},   Range{0xeb1, 0xeb1},     Range{0xeb4, 0xebc},    Range{0xec8, 0xece},
    Range{0x1160, 0x11ff}, Range{0x1ab0, 0x1aff},   Range{0x1dc0, 0x1dff},  Range{0x200b, 0x200d},
    Range{0x20d0, 0x20ff}, Range{0x302a, 0x302d},   Range{0x3099, 0x309a},  Range{0xfe00, 0xfe0f},
    Range{0xfe20, 0xfe2f}, Range{0x1f3fb, 0x1f3ff}, Range{0xe0100, 0xe01ef}};

/// Unicode, UAX 11: Wide and Fullwidth. Some ranges also cover narrow characters in between.
constexpr std::array kWide{
    Range{0x1100, 0x115f},   Range{0x231a, 0x231b},   Range{0x2329, 0x232a},
    Range{0x23e9, 0x23ec},   Range{0x23f0, 0x23f0},   Range{0x23f3, 0x23f3},
    Range{0x25fd, 0x25fe},   Range{0x2614, 0x2615},   Range{0x2648, 0x2653},
    Range{0x267f, 0x267f},   Range{0x2693, 0x2693},   Range{0x26a1, 0x26a1},
    Range{0x26aa, 0x26ab},   Range{0x26bd, 0x26be},   Range{0x26c4, 0x26c5},
    Range{0x26ce, 0x26ce},   Range{0x26d4, 0x26d4},   Range{0x26ea, 0x26ea},
    Range{0x26f2, 0x26f5},   Range{0x26fa, 0x26fd},   Range{0x2705, 0x2705},
    Range{0x270a, 0x270b},   Range{0x2728, 0x2728},   Range{0x274c, 0x274e},
    Range{0x2753, 0x2757},   Range{0x2795, 0x2797},   Range{0x27b0, 0x27bf},
    Range{0x2b1b, 0x2b1c},   Range{0x2b50, 0x2b55},   Range{0x2e80, 0x303e},
    Range{0x3041, 0x4dbf},   Range{0x4e00, 0xa4cf},   Range{0xa960, 0xa97f},
    Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe10, 0xfe19},
    Range{0xfe30, 0xfe6f},   Range{0xff01, 0xff60},   Range{0xffe0, 0xffe6},
    Range{0x16fe0, 0x18aff}, Range{0x1b000, 0x1b2ff}, Range{0x1f004, 0x1f004},
    Range{0x1f0cf, 0x1f0cf}, Range{0x1f18e, 0x1f18e}, Range{0x1f191, 0x1f19a},
    Range{0x1f200, 0x1f320}, Range{0x1f32d, 0x1f5ff}, Range{0x1f600, 0x1f64f},
    Range{0x1f680, 0x1f6ff}, Range{0x1f7e0, 0x1f7eb}, Range{0x1f900, 0x1f9ff},
    Range{0x1fa70, 0x1faff}, Range{0x20000, 0x3fffd}};

std::size_t columns_of(const Letter& letter) {
    if (is_in(kZeroWidth, letter.code)) return 0;
    return is_in(kWide, letter.code) ? 2 : 1;
}

/// Calls `visit` with each letter and the letter's byte offset, until `visit` returns false.
template <typename Visit> void for_each_letter(std::string_view text, Visit visit) {
    for (std::size_t at = 0; at < text.size();) {
        const Letter letter = first_letter(text.substr(at));
        if (!visit(letter, at)) return;
        at += letter.bytes;
    }
}

}  // namespace

std::string wrong_in_utf8(std::string_view text) {
    std::string wrong;
    for_each_letter(text, [&](const Letter& letter, std::size_t at) {
        if (!letter.is_valid)
            wrong = fmt::format("byte {} (0x{:02x}) belongs to no character", at + 1,
                                static_cast<unsigned char>(text[at]));
        return letter.is_valid;
    });
    return wrong;
}

std::string as_utf8(std::string text) {
    if (wrong_in_utf8(text).empty()) return text;
    constexpr std::string_view kReplacement = "\xef\xbf\xbd";
    std::string whole;
    for_each_letter(text, [&](const Letter& letter, std::size_t at) {
        whole += letter.is_valid ? std::string_view(text).substr(at, letter.bytes) : kReplacement;
        return true;
    });
    return whole;
}

std::string printable(std::string_view text) {
    std::string shown;
    for_each_letter(text, [&](const Letter& letter, std::size_t at) {
        const bool stays = letter.is_valid && !is_in(kHarmful, letter.code);
        shown += stays ? text.substr(at, letter.bytes) : std::string_view("?");
        return true;
    });
    return shown;
}

std::string_view start_of(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    // a byte 10xxxxxx continues a character
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0u) == 0x80u) --bytes;
    return text.substr(0, bytes);
}

std::size_t width_of(std::string_view text) {
    std::size_t width = 0;
    for_each_letter(text, [&width](const Letter& letter, std::size_t) {
        width += columns_of(letter);
        return true;
    });
    return width;
}

std::string_view fitting(std::string_view text, std::size_t columns) {
    std::size_t width = 0, end = text.size();
    for_each_letter(text, [&](const Letter& letter, std::size_t at) {
        width += columns_of(letter);
        if (width > columns) end = at;
        return width <= columns;
    });
    return text.substr(0, end);
}

}  // namespace vgpu::text
