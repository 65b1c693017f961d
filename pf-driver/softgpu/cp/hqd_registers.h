// SPDX-License-Identifier: MIT
//
// Registers of the command processor: the HQD bank (selected by GRBM_GFX_CNTL), SH_MEM_* (selected
// by its VMID field) and the gfx ring (CP_RB0_*). A write of 1 to CP_HQD_ACTIVE puts the selected
// queue on the hardware with the registers it has, which is how the KIQ starts; a DEQUEUE_REQUEST
// takes it off, and ACTIVE reads 0 when it is.
#pragma once

#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// Claims the registers; once, while the VF is built.
void claim_registers(Core& core);

}  // namespace vgpu::softgpu::cp
