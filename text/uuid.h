// SPDX-License-Identifier: MIT
//
// Parses, prints and generates UUIDs, which identify VFs and libvirt's domains.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::text {

/// The bytes in the order of the text form (RFC 4122). All zeroes mean no UUID.
using Uuid = std::array<std::uint8_t, 16>;

/// The UUID in lower-case hexadecimal, with dashes after 8, 12, 16 and 20 digits.
std::string uuid_text(const Uuid& uuid);
/// The UUID in `text`, in upper or lower case; none if `text` is anything else, such as a UUID in
/// braces or after "urn:uuid:".
std::optional<Uuid> parse_uuid(std::string_view text);
/// A random (version 4) UUID.
Uuid make_uuid();

}  // namespace vgpu::text
