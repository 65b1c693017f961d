// SPDX-License-Identifier: MIT
//
// The registers of the command processor: the HQD bank (selected by GRBM_GFX_CNTL), SH_MEM_*
// (selected by its VMID field) and the gfx ring (CP_RB0_*). A write of 1 to CP_HQD_ACTIVE maps the
// selected queue with the registers that it has, which is how the KIQ starts. A DEQUEUE_REQUEST
// unmaps the queue; ACTIVE reads 0 when the queue is off.
#pragma once

#include "pf-driver/softgpu/cp/core.h"

namespace vgpu::softgpu::cp {

/// Claims the registers; called once, while the VF is built.
void claim_registers(Core& core);

}  // namespace vgpu::softgpu::cp
