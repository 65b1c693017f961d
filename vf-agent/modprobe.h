// SPDX-License-Identifier: MIT
//
// Options that amdgpu of a Linux release needs on a VF, as a line for modprobe.d.
// Printed by `vgpu-agent --modprobe-options` in data/vgpu-modprobe.service and the initramfs hook.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::agent {

/// A comment and "options amdgpu …", or only a comment that no option is needed. `release` is like
/// "6.12.57+deb13-amd64"; one that is not in the table needs no option. Ends with a newline.
std::string modprobe_line(std::string_view release);

}  // namespace vgpu::agent
