// SPDX-License-Identifier: MIT
//
// Can a GPU have these VFs at all? The same checks with the same words for a VF that is created,
// changed or resized, and for all VFs of a plan, before anything is done: what does not fit is
// refused with the resource, the shortage and what would make it fit. Pure.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <span>
#include <string>

namespace vgpu::daemon {

/// What one VF of `gpu` can have, whatever the others get.
/// OutOfRange (a size that no VF of this GPU can have), NoVram, NoDoorbells, NoComputeUnits. Its
/// shape is normalised.
Result<> check_vf_capacity(const GpuInventory& gpu, const VfDefinition& vf);

/// `vfs` all together on `gpu`, nothing else.
/// As check_vf_capacity() and admit(); NoFreeVf.
Result<> check_capacity(const GpuInventory& gpu, const GpuSettings& settings,
                        std::span<const VfDefinition> vfs);

/// NoSchedule, with what would fit, unless a run table of `gpu` can serve these VFs together.
/// OutOfRange for a contract that makes no sense by itself.
Result<> admit(const std::string& gpu, const GpuSettings& settings,
               std::span<const VfDefinition> vfs);

/// The mask of all compute units there are.
std::uint64_t all_cus(const GpuInventory& gpu);

/// All compute units and all doorbell pages become 0.
VfShape normalised(VfShape shape, const GpuInventory& gpu);

}  // namespace vgpu::daemon
