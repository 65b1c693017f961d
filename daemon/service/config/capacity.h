// SPDX-License-Identifier: MIT
//
// Checks whether a GPU can have one VF, or all VFs of a plan. If a request is too large, the error
// names the resource, the shortage and what would fit. Pure.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <span>
#include <string>

namespace vgpu::daemon {

/// Checks one VF, regardless of other VFs. Fails with NoVram, NoDoorbells or NoComputeUnits if the
/// request exceeds the limit of one VF; with OutOfRange for other invalid values; with NotOffered
/// if the driver cannot change a setting; or with Observed if vgpud only watches the GPU. Pass
/// normalised() resources, because a number or a mask that means "all" counts as a change.
Result<> check_capacity(const GpuInventory& gpu, const VfSpec& vf);

/// Checks each of `vfs`, and then whether they fit together, as if `gpu` had no other VFs. Fails as
/// the check of one VF and admit() do; with NoVram if the sum of the VRAM is too large; or with
/// NoFreeVf if there are more VFs than the GPU can have.
Result<> check_capacity(const GpuInventory& gpu, const GpuSettings& settings,
                        std::span<const VfSpec> vfs);

/// Checks that the driver offers everything in `vfs` that differs from the default, except VRAM.
/// If vgpud plans run tables or sets quanta, also checks that all contracts can be kept together.
/// Fails with NotOffered or Observed; with OutOfRange for an invalid value; or with NoSchedule. The
/// cause of NoSchedule names values that would fit, if there are any.
Result<> admit(const GpuInventory& gpu, const GpuSettings& settings, std::span<const VfSpec> vfs);

/// Checks that the driver can change the GPU's own settings from `from` to `to`. Fails with
/// NotOffered, Observed or OutOfRange.
Result<> check_settings(const GpuInventory& gpu, const GpuSettings& from, const GpuSettings& to);

/// The mask of all existing compute units; all ones if the driver offers no choice.
std::uint64_t all_cus(const GpuInventory& gpu);

/// Replaces the mask of all compute units, and the number of all doorbell pages, by 0, which means
/// "all".
VfResources normalised(VfResources resources, const GpuInventory& gpu);

}  // namespace vgpu::daemon
