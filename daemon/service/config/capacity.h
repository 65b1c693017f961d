// SPDX-License-Identifier: MIT
//
// Capacity checks of a GPU, with the same texts for a single VF and for all VFs of a plan. An error
// names the resource, the shortage and what would fit. Pure.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <span>
#include <string>

namespace vgpu::daemon {

/// Limits of one VF, regardless of others. OutOfRange (a size no VF of this GPU can have), NoVram,
/// NoDoorbells, NoComputeUnits, NotOffered. The resources must be normalised.
Result<> check_capacity(const GpuInventory& gpu, const VfSpec& vf);

/// Checks each of `vfs`, and all of them together on an empty `gpu`. Errors: as above, those of
/// admit(), and NoFreeVf.
Result<> check_capacity(const GpuInventory& gpu, const GpuSettings& settings,
                        std::span<const VfSpec> vfs);

/// Whether the driver offers all settings, and the schedule can keep all contracts. A setting that
/// has its default needs nothing. NotOffered, NoSchedule, with values that would fit, or OutOfRange
/// for an invalid value.
Result<> admit(const GpuInventory& gpu, const GpuSettings& settings, std::span<const VfSpec> vfs);

/// Whether the driver offers the GPU's own settings that change. NotOffered or OutOfRange.
Result<> check_settings(const GpuInventory& gpu, const GpuSettings& from, const GpuSettings& to);

/// The mask of all existing compute units.
std::uint64_t all_cus(const GpuInventory& gpu);

/// Replaces a mask of all compute units, and a number of all doorbell pages, by 0.
VfResources normalised(VfResources resources, const GpuInventory& gpu);

}  // namespace vgpu::daemon
