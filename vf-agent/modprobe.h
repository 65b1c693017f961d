// SPDX-License-Identifier: MIT
//
// The options that amdgpu requires on a VF, which depend on the Linux release, as a line for
// modprobe.d. `vgpu-agent --modprobe-options` prints the line; data/vgpu-modprobe.service and the
// initramfs hook run this command.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::agent {

/// A comment line and, if amdgpu of `release` needs options, a line "options amdgpu …". Each ends
/// with a newline. `release`: for example "6.12.57+deb13-amd64". For an untested release, only the
/// comment.
std::string modprobe_line(std::string_view release);

}  // namespace vgpu::agent
