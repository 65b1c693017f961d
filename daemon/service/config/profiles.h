// SPDX-License-Identifier: MIT
//
// Configurations that vgpud makes by itself: the VFs there are, written down so that reading it
// back wants exactly them; and fair splits of a GPU into 1, 2, 4, 8 or 16 equal VFs. Pure.
//
// A split depends on the device alone, never on what is free now: each VF gets the VRAM of all VFs
// (what the PF keeps is not in it) divided by their number, rounded down, at most its BAR0; all
// compute units in turn; all doorbell pages; the default weight. All of this is written down.
#pragma once

#include "daemon/service/config/configuration.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <array>
#include <span>
#include <string>

namespace vgpu::daemon {

/// Powers of two up to the VFs a GPU can have.
inline constexpr std::array<std::uint32_t, 5> kSplits{1, 2, 4, 8, 16};

/// What these GPUs have, under `label`.
Configuration current_configuration(std::span<const GpuInventory> gpus, const std::string& label);

/// To what the VRAM of a part is rounded down.
/// PowerOfTwo: sizes that VFs of every GPU can have, so that a guest can move between GPUs. Unit:
/// as much as there is.
enum class Rounding { PowerOfTwo, Unit };

/// Labels "auto-N" (PowerOfTwo) and "even-N" (Unit) for each split that one of the GPUs can have; a
/// GPU that cannot is left out of it. VFs are named "<gpu>-<n>", profiles "<gpu>-<label>".
Configuration automatic_configuration(std::span<const GpuInventory> gpus);

/// VRAM of each VF when `gpu` is split into `vfs`; 0 if it cannot be.
std::uint64_t split_vram_bytes(const GpuInventory& gpu, std::uint32_t vfs, Rounding rounding);

}  // namespace vgpu::daemon
