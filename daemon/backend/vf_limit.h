// SPDX-License-Identifier: MIT
//
// The maximum number of VFs that vgpud manages on one GPU, even if the device can have more. xe has
// at most 63 VFs, and our PF core at most VGPU_PF_MAX_VFS.
#pragma once

#include <cstdint>

namespace vgpu::daemon {

inline constexpr std::uint32_t kMaxVfsPerGpu = 64;

}  // namespace vgpu::daemon
