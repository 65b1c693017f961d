// SPDX-License-Identifier: MIT
//
// UTF-8 that others have chosen: guests, users of libvirt, documents. What tells a terminal to do
// something, or hides what is there, is replaced; letters of all languages stay. Widths are those
// of a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vgpu::text {

/// What is wrong with `text` as UTF-8, with the place; "" if nothing is.
std::string wrong_in_utf8(std::string_view text);

/// `text` with U+FFFD for each byte that is no UTF-8.
/// A bus disconnects whoever sends anything else (D-Bus specification, "Invalid Protocol Usage").
std::string as_utf8(std::string text);

/// `text` with '?' for every control character (C0, DEL, C1), line and paragraph separator, mark
/// that changes the direction of writing, and byte that is no UTF-8. It may go to any terminal, bus
/// and log; letters stay as they are.
std::string printable(std::string_view text);

/// At most `bytes` bytes of `text`, which is UTF-8; no character is cut.
std::string_view start_of(std::string_view text, std::size_t bytes);

/// Columns that a terminal gives `text`: none to combining marks, two to East Asian wide letters.
std::size_t width_of(std::string_view text);

/// The most of `text` that fits `columns`; no character is cut, none loses its marks.
std::string_view fitting(std::string_view text, std::size_t columns);

}  // namespace vgpu::text
