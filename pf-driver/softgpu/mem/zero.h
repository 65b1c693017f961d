// SPDX-License-Identifier: MIT
//
// Zeroing and checking for zero at memory speed, for scrubbing VRAM.
#pragma once

#include <cstddef>
#include <span>

namespace vgpu::softgpu::mem {

/// Stores zeroes past the caches; the stores are visible to other threads on return.
void zero_non_temporal(std::span<std::byte> bytes);

/// Index of the first byte that is not zero; bytes.size() if none.
[[nodiscard]] std::size_t find_non_zero(std::span<const std::byte> bytes);

}  // namespace vgpu::softgpu::mem
