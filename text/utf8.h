// SPDX-License-Identifier: MIT
//
// Functions for untrusted UTF-8 text from guests, users of libvirt and documents. printable()
// replaces characters that control a terminal or hide text, and keeps letters of all languages.
// Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vgpu::text {

/// An error text that names the first byte of `text` that is not valid UTF-8; "" if there is none.
std::string wrong_in_utf8(std::string_view text);

/// `text` with U+FFFD for each byte that is not valid UTF-8. Used for messages on D-Bus, because a
/// bus disconnects a peer that sends invalid UTF-8 (D-Bus specification, "Invalid Protocol Usage").
std::string as_utf8(std::string text);

/// `text` with '?' for every invalid byte and every harmful character. Harmful characters are
/// control characters (C0, DEL, C1), line and paragraph separators, marks that change the direction
/// of writing, the byte order mark, annotation marks, U+FFFE and U+FFFF. The result is one line of
/// valid UTF-8.
std::string printable(std::string_view text);

/// The longest prefix of `text`, which must be UTF-8, that has at most `bytes` bytes and cuts no
/// character.
std::string_view start_of(std::string_view text, std::size_t bytes);

/// Width of `text` in terminal columns: 0 for a combining mark, 2 for a wide letter (UAX 11), 1 for
/// any other character or invalid byte.
std::size_t width_of(std::string_view text);

/// The longest prefix of `text` that fits into `columns` terminal columns. Cuts no character, and
/// keeps the combining marks of the last character.
std::string_view fitting(std::string_view text, std::size_t columns);

}  // namespace vgpu::text
