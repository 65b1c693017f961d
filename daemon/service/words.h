// SPDX-License-Identifier: MIT
//
// Checks names of VFs. Also imports helpers of text/ into vgpu::daemon, because all of
// daemon/service uses them to write error causes and properties.
#pragma once

#include "text/nearest.h"
#include "text/size.h"
#include "text/utf8.h"
#include "text/uuid.h"

#include <string_view>

namespace vgpu::daemon {

using text::did_you_mean;
using text::make_uuid;
using text::parse_uuid;
using text::printable;
using text::size_text;
using text::start_of;
using text::Uuid;
using text::uuid_text;

/// True if a VF may have the name: 1 to 63 characters of [A-Za-z0-9._-], the first is a letter, and
/// the name is not a UUID.
bool is_valid_name(std::string_view name);

}  // namespace vgpu::daemon
