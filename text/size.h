// SPDX-License-Identifier: MIT
//
// Sizes as people write them: one grammar and one printer for vgpuctl, profiles, error texts and
// the configuration of vgpud, so that what one prints the other reads. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::text {

/// The grammar in a few words, for messages.
inline constexpr std::string_view kSizeWords =
    "a whole number of bytes, or one with K, M, G, T, KiB, MiB, GiB or TiB, such as 256M or "
    "\"256 MiB\"";

/// Bytes of "256M", "256 MiB", "1GiB", "4096", "4096 B" or "4096 bytes"; nothing if it is no size.
/// Units are powers of 1024. Signs, fractions, lower case, overflow and more than one blank are
/// refused.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// "128 MiB", "2.5 GiB", "100 B"
/// Exact where it is a whole number of a unit; else to a tenth, of the largest unit of which there
/// are two. parse_size() takes what is exact.
std::string size_text(std::uint64_t bytes);

/// "128MiB", "2624MiB", "100B"
/// In the largest unit that holds it exactly and without a blank: for documents and names.
std::string exact_size_text(std::uint64_t bytes);

}  // namespace vgpu::text
