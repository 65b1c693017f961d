// SPDX-License-Identifier: MIT
//
// The most VFs of a GPU that vgpud manages: xe has up to 63. A GPU of our PF core has at most
// VGPU_PF_MAX_VFS of them.
#pragma once

#include <cstdint>

namespace vgpu::daemon {

inline constexpr std::uint32_t kMaxVfsPerGpu = 64;

}  // namespace vgpu::daemon
