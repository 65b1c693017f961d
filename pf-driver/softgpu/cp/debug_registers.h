// SPDX-License-Identifier: MIT
//
// Registers by which a driver helps a debugger: address watches (TCP_WATCHn_*) and the exceptions
// that new waves enable (SPI_GDBG_TRAP_MASK). All are storage of the register file, and so travel
// with it; the watches are decoded here for the waves.
#pragma once

#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// Claims TCP_WATCHn_* in core.registers; called once, when the CP is built.
void claim_watch_registers(Core& core);
/// Decodes all watches anew: the storage has been replaced without a write.
void follow_watch_registers(Core& core);

/// SPI_GDBG_TRAP_MASK as it is now.
[[nodiscard]] isa::LaunchExceptions launch_exceptions(const Core& core);

}  // namespace vgpu::softgpu::cp
