// SPDX-License-Identifier: MIT
//
// Parses and prints sizes as people write them, so that vgpuctl, profiles, error texts and the
// configuration of vgpud use one notation. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::text {

/// Describes the sizes that parse_size() accepts, for error texts.
inline constexpr std::string_view kSizeWords =
    "a whole number of bytes, or one with K, M, G, T, KiB, MiB, GiB or TiB, such as 256M or "
    "\"256 MiB\"";

/// The bytes of a size such as "256M", "256 MiB", "1GiB", "4096", "4096 B" or "4096 bytes"; none if
/// `text` is not a size. Units are powers of 1024. Refuses signs, fractions, overflow, more than
/// one blank, and units in lower case except "bytes".
std::optional<std::uint64_t> parse_size(std::string_view text);

/// The size for people: "128 MiB", "2.5 GiB", "100 B". Uses the largest unit that divides the size
/// or is at most half of it. If this unit does not divide the size, rounds to a tenth of the unit;
/// parse_size() refuses the result.
std::string size_text(std::uint64_t bytes);

/// The size for documents and names, in the largest unit that divides the size: "128MiB",
/// "2624MiB", "100B".
std::string exact_size_text(std::uint64_t bytes);

}  // namespace vgpu::text
