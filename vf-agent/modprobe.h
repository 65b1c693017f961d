// SPDX-License-Identifier: MIT
//
// Options that amdgpu of a Linux release needs on a VF, as a line for modprobe.d. Printed by
// `vgpu-agent --modprobe-options`, which data/vgpu-modprobe.service and the initramfs hook run.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::agent {

/// "options amdgpu …", or a comment that none is needed; for "6.12.57+deb13-amd64" and the like.
/// A release that is in no row of the table, or no release at all, needs none. Ends with a newline.
std::string modprobe_line(std::string_view release);

}  // namespace vgpu::agent
