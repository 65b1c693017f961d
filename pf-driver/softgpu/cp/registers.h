// SPDX-License-Identifier: MIT
//
// The registers of the command processor: the HQD bank and SH_MEM_*, which GRBM_GFX_CNTL selects by
// queue and by VMID, and the gfx ring (CP_RB0_*). A write of 1 to CP_HQD_ACTIVE maps the selected
// queue with the present values of its registers; a driver starts the KIQ in this way. A
// DEQUEUE_REQUEST unmaps the queue; ACTIVE reads 0 when the queue is off.
//
// For a debugger there are address watches (TCP_WATCHn_*), which registers.cpp decodes for the
// waves, and the exceptions that new waves enable (SPI_GDBG_TRAP_MASK).
#pragma once

#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// Claims the registers; called once, while the VF is built.
void claim_registers(Core& core);
/// Decodes all watches again, after the registers were replaced without a write.
void follow_watch_registers(Core& core);

/// The contents of SPI_GDBG_TRAP_MASK, decoded.
[[nodiscard]] isa::LaunchExceptions launch_exceptions(const Core& core);

}  // namespace vgpu::softgpu::cp
