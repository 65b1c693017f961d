// SPDX-License-Identifier: MIT
//
// UUIDs of VFs and of libvirt's domains: read, written and made.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::text {

/// In written order (RFC 4122); all zeroes: none.
using Uuid = std::array<std::uint8_t, 16>;

/// "8-4-4-4-12" in lower-case hexadecimal.
std::string uuid_text(const Uuid& uuid);
/// Accepts upper and lower case; no braces, no "urn:".
std::optional<Uuid> parse_uuid(std::string_view text);
/// A random (version 4) UUID.
Uuid make_uuid();

}  // namespace vgpu::text
