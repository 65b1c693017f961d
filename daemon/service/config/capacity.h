// SPDX-License-Identifier: MIT
//
// Capacity checks of a GPU, with the same error texts for a single VF and for all VFs of a plan. An
// error names the resource, the shortage and what would fit. Pure.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <span>
#include <string>

namespace vgpu::daemon {

/// Checks one VF, regardless of other VFs. NoVram, NoDoorbells or NoComputeUnits if one VF cannot
/// have that much; OutOfRange for other invalid values; NotOffered or Observed for settings that
/// the driver or vgpud cannot change. The resources must be normalised (normalised()).
Result<> check_capacity(const GpuInventory& gpu, const VfSpec& vf);

/// Checks each of `vfs`, and all of them together on an empty `gpu`. Fails as the check of one VF
/// and as admit(), or with NoFreeVf.
Result<> check_capacity(const GpuInventory& gpu, const GpuSettings& settings,
                        std::span<const VfSpec> vfs);

/// Checks that the driver offers all settings, and that the schedule can keep all contracts. The
/// driver need not offer a setting with its default value. Fails with NotOffered or Observed, with
/// OutOfRange for an invalid value, or with NoSchedule and values that would fit.
Result<> admit(const GpuInventory& gpu, const GpuSettings& settings, std::span<const VfSpec> vfs);

/// Checks that the driver can change the GPU's own settings from `from` to `to`. Fails with
/// NotOffered, Observed or OutOfRange.
Result<> check_settings(const GpuInventory& gpu, const GpuSettings& from, const GpuSettings& to);

/// The mask of all existing compute units.
std::uint64_t all_cus(const GpuInventory& gpu);

/// Replaces the mask of all compute units, and the number of all doorbell pages, by 0.
VfResources normalised(VfResources resources, const GpuInventory& gpu);

}  // namespace vgpu::daemon
