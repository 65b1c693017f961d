// SPDX-License-Identifier: MIT
//
// The registers that a driver uses for a debugger: address watches (TCP_WATCHn_*) and the
// exceptions that new waves enable (SPI_GDBG_TRAP_MASK). The register file stores and saves them
// all; the watches are decoded here for the waves.
#pragma once

#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// Claims TCP_WATCHn_* in core.registers; called once, when the CP is built.
void claim_watch_registers(Core& core);
/// Decodes all watches again, after the registers were replaced without a write.
void follow_watch_registers(Core& core);

/// The present SPI_GDBG_TRAP_MASK.
[[nodiscard]] isa::LaunchExceptions launch_exceptions(const Core& core);

}  // namespace vgpu::softgpu::cp
