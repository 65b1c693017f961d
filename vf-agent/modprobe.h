// SPDX-License-Identifier: MIT
//
// Makes the line for modprobe.d with the options that amdgpu of a Linux release requires on a VF.
// `vgpu-agent --modprobe-options` prints the line; data/vgpu-modprobe.service and the initramfs
// hook run this command.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::agent {

/// A comment line and, if amdgpu of `release` requires options, a line "options amdgpu …". Each
/// line ends with a newline. `release`: as from uname -r, such as "6.12.57+deb13-amd64". For an
/// untested release, returns only the comment line.
std::string modprobe_line(std::string_view release);

}  // namespace vgpu::agent
