// SPDX-License-Identifier: MIT
//
// Options that amdgpu of a Linux release requires on a VF, as a line for modprobe.d. Printed by
// `vgpu-agent --modprobe-options` in data/vgpu-modprobe.service and the initramfs hook.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::agent {

/// "options amdgpu …" with a comment, or only a comment; with newline. `release`: for example
/// "6.12.57+deb13-amd64". A release that is not known requires no option.
std::string modprobe_line(std::string_view release);

}  // namespace vgpu::agent
