// SPDX-License-Identifier: MIT
//
// Texts: UUIDs, names of VFs, and helpers of text/. Pure functions, used in error causes and
// properties throughout daemon/service.
#pragma once

#include "text/nearest.h"
#include "text/size.h"
#include "text/utf8.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// In written order (RFC 4122); all zeroes: none.
using Uuid = std::array<std::uint8_t, 16>;

using text::did_you_mean;
using text::printable;
using text::size_text;
using text::start_of;

/// "8-4-4-4-12" lower-case hexadecimal
std::string uuid_text(const Uuid& uuid);
/// Upper or lower case; no braces, no "urn:".
std::optional<Uuid> parse_uuid(std::string_view text);
/// A random (version 4) UUID.
Uuid make_uuid();

/// Names of VFs: 1 to 63 of [A-Za-z0-9._-], first a letter; no GPU-like "x/vfN", no UUID.
bool is_valid_name(std::string_view name);

}  // namespace vgpu::daemon
