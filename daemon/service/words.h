// SPDX-License-Identifier: MIT
//
// Words for people: sizes, UUIDs, the nearest of some names. Pure functions, used in error causes
// and properties throughout daemon/service.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// Bytes in the order in which they are written (RFC 4122); all zeroes: none.
using Uuid = std::array<std::uint8_t, 16>;

/// "128 MiB", "2.5 GiB", "100 bytes"
/// Exact where it is a whole number of a unit; else to a tenth, of the largest unit of which there
/// are two.
std::string size_text(std::uint64_t bytes);

/// "8-4-4-4-12" lower-case hexadecimal
std::string uuid_text(const Uuid& uuid);
/// Either case; no braces and no "urn:".
std::optional<Uuid> parse_uuid(std::string_view text);
/// A random (version 4) UUID.
Uuid make_uuid();

/// At most `bytes` bytes of `text`, which is UTF-8; no character is cut.
std::string_view start_of(std::string_view text, std::size_t bytes);

/// `text` with '?' for every byte that is no printable ASCII: what others have chosen and terminals
/// show. No control character, no escape sequence and no broken UTF-8 is left.
std::string printable(std::string_view text);

/// "; did you mean 'weight'?" if one of `known` is close to `word`, else "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

/// Names of VFs: 1 to 63 of [A-Za-z0-9._-], first a letter; not a GPU-like "x/vfN" or UUID.
bool is_valid_name(std::string_view name);

}  // namespace vgpu::daemon
