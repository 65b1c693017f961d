// SPDX-License-Identifier: MIT
//
// Can a GPU have these VFs at all? Checked before any step is planned, so that what does not fit is
// refused with the resource, the shortage and what would make it fit. Pure; part of
// make_change_plan().
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/gpu_inventory.h"

#include <span>

namespace vgpu::daemon {

/// `vfs` all together on `gpu`, nothing else. Shapes are normalised.
/// OutOfRange (a size that no VF of this GPU can have), NoVram, NoDoorbells, NoComputeUnits,
/// NoFreeVf or NoSchedule.
Result<> check_fit(const GpuInventory& gpu, const GpuSettings& settings,
                   std::span<const VfDefinition> vfs);

/// The mask of all compute units there are.
std::uint64_t all_cus(const GpuInventory& gpu);

/// All compute units and all doorbell pages become 0.
VfShape normalised(VfShape shape, const GpuInventory& gpu);

/// True if a run table can serve these VFs.
/// NoSchedule or OutOfRange as GpuSchedule::admit(); VFs are numbered from 1 in their order.
Result<> check_schedule(const GpuSettings& settings, std::span<const VfDefinition> vfs);

}  // namespace vgpu::daemon
