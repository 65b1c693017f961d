// SPDX-License-Identifier: MIT
//
// Texts: names of VFs, and helpers of text/. Pure functions, used in error causes and properties in
// all of daemon/service.
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

/// Names of VFs: 1 to 63 of [A-Za-z0-9._-], first a letter; no GPU-like "x/vfN", no UUID.
bool is_valid_name(std::string_view name);

}  // namespace vgpu::daemon
