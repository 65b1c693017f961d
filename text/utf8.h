// SPDX-License-Identifier: MIT
//
// Functions on untrusted UTF-8: from guests, users of libvirt, documents. They replace characters
// that control a terminal or hide text, and keep the letters of all languages. Widths are those of
// a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vgpu::text {

/// Names the first byte of `text` that is not valid UTF-8; "" if none.
std::string wrong_in_utf8(std::string_view text);

/// `text` with U+FFFD for each byte that is not valid UTF-8.
/// A bus disconnects a peer that sends other bytes (D-Bus specification, "Invalid Protocol Usage").
std::string as_utf8(std::string text);

/// `text` with '?' for every control character (C0, DEL, C1), line and paragraph separator, mark
/// that changes the direction of writing, and invalid byte. The result is safe for any terminal,
/// bus and log; letters are kept.
std::string printable(std::string_view text);

/// The first `bytes` bytes of `text` (UTF-8) or fewer; cuts no character.
std::string_view start_of(std::string_view text, std::size_t bytes);

/// Width of `text` in terminal columns: 0 for a combining mark, 2 for an East Asian wide letter.
std::size_t width_of(std::string_view text);

/// The longest start of `text` that fits into `columns`; cuts neither a character nor its marks.
std::string_view fitting(std::string_view text, std::size_t columns);

}  // namespace vgpu::text
