// SPDX-License-Identifier: MIT
//
// The registers of the command processor: the CP_HQD_* registers of the queue and the SH_MEM_*
// registers of the VMID that GRBM_GFX_CNTL selects, and the registers of the gfx ring (such as
// CP_RB0_*). A write of 1 to CP_HQD_ACTIVE maps the selected queue, if it is unmapped, with the
// current values of its registers; a driver starts the KIQ in this way. A write of 0 to
// CP_HQD_ACTIVE, or of a value other than 0 to CP_HQD_DEQUEUE_REQUEST, unmaps the queue; ACTIVE
// reads 0 when the queue is off the hardware.
//
// Two groups of registers are for debuggers: the address watches (TCP_WATCHn_*), which
// registers.cpp decodes for the waves, and the exceptions that are enabled in new waves
// (SPI_GDBG_TRAP_MASK).
#pragma once

#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// Claims the CP's registers (RegisterFile::claim()); called once, while the VF is constructed.
void claim_registers(Core& core);
/// Decodes all address watches again; call after a load, which sets registers without a call of
/// their handlers.
void decode_watch_registers(Core& core);

/// The contents of SPI_GDBG_TRAP_MASK, decoded.
[[nodiscard]] isa::LaunchExceptions launch_exceptions(const Core& core);

}  // namespace vgpu::softgpu::cp
