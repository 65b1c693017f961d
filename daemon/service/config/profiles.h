// SPDX-License-Identifier: MIT
//
// Configurations that vgpud makes. One describes the current VFs, such that reading the document
// back requests exactly these. The other splits a GPU equally into 1, 2, 4, 8 or 16 VFs. A split
// depends only on the device, not on free resources: each VF gets (VRAM of all VFs) / count,
// rounded down, at most its BAR0; all compute units; all doorbell pages; the default weight. Pure.
#pragma once

#include "daemon/service/config/configuration.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <array>
#include <span>
#include <string>

namespace vgpu::daemon {

/// Powers of two up to the limit of VFs.
inline constexpr std::array<std::uint32_t, 5> kSplits{1, 2, 4, 8, 16};

Configuration current_configuration(std::span<const GpuInventory> gpus, const std::string& label);

/// Rounding of a VF's VRAM. PowerOfTwo: sizes possible on every GPU, so that a guest can move
/// between GPUs. Unit: as much VRAM as possible.
enum class Rounding { PowerOfTwo, Unit };

/// Labels "auto-N" (PowerOfTwo) and "even-N" (Unit) for each split that is possible on a GPU; GPUs
/// on which it is not possible are omitted. VFs are named "<gpu>-<n>", profiles "<gpu>-<label>".
Configuration automatic_configuration(std::span<const GpuInventory> gpus);

/// VRAM per VF when `gpu` is split into `vfs`; 0 if impossible.
std::uint64_t split_vram_bytes(const GpuInventory& gpu, std::uint32_t vfs, Rounding rounding);

}  // namespace vgpu::daemon
