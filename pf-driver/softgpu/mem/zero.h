// SPDX-License-Identifier: MIT
//
// Fast functions that zero memory or check that it is zero, for scrubbing VRAM.
#pragma once

#include <cstddef>
#include <span>

namespace vgpu::softgpu::mem {

/// Zeroes `bytes`. On x86-64, the stores of whole cache lines bypass the caches. A later release
/// store publishes the zeroes, as it publishes ordinary stores.
void zero_non_temporal(std::span<std::byte> bytes);

/// Index of the first byte that is not zero; bytes.size() if none.
[[nodiscard]] std::size_t find_non_zero(std::span<const std::byte> bytes);

}  // namespace vgpu::softgpu::mem
