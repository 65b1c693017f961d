// SPDX-License-Identifier: MIT
//
// Configurations that vgpud makes. current_configuration() describes the current VFs, so that an
// apply of its document changes no VF. automatic_configuration() splits each GPU equally into 1, 2,
// 4, 8 or 16 VFs. A split depends only on the device, not on free resources. Each VF gets (VRAM for
// all VFs) / count, rounded down, but at most the limit of one VF. Each VF also gets all compute
// units, all doorbell pages and the default weight. Pure.
#pragma once

#include "daemon/service/config/configuration.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <array>
#include <span>
#include <string>

namespace vgpu::daemon {

/// Numbers of VFs: powers of two up to VGPU_PF_MAX_VFS.
inline constexpr std::array<std::uint32_t, 5> kSplits{1, 2, 4, 8, 16};

/// A document with one config, which has the label `label` and the current VFs of `gpus`.
Configuration current_configuration(std::span<const GpuInventory> gpus, const std::string& label);

/// How to round down a VF's VRAM.
enum class Rounding {
    PowerOfTwo,  ///< to a power of two, so that GPUs have VFs of equal sizes and guests can move
    Unit,        ///< to a multiple of the GPU's unit, so that little VRAM is wasted
};

/// A document with labels "auto-N" (PowerOfTwo) and "even-N" (Unit) for each split that is possible
/// on a GPU. A label omits GPUs on which its split is impossible. VFs are named "<gpu>-<n>", and
/// profiles "<gpu>-<label>".
Configuration automatic_configuration(std::span<const GpuInventory> gpus);

/// VRAM per VF when `gpu` is split into `vfs`; 0 if impossible.
std::uint64_t split_vram_bytes(const GpuInventory& gpu, std::uint32_t vfs, Rounding rounding);

}  // namespace vgpu::daemon
