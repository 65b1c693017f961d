/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory queue descriptor (MQD) of GFX9 compute queues: 512 dwords. Dwords 128 to 183 are the
 * banked registers CP_MQD_BASE_ADDR .. CP_HQD_PQ_WPTR_HI in order (regs.def).
 * Source: Linux amdgpu v9_structs.h, amdkfd kfd_mqd_manager_v9.c.
 */
#ifndef VGPU_HW_MQD_H
#define VGPU_HW_MQD_H

#include "pf-driver/hw/regs.h"

#define MQD_DWORDS	 512u
#define MQD_BYTES	 (MQD_DWORDS * 4u)
#define MQD_HEADER_VALUE 0xc0310800u /* the constant that drivers write to dword MQD_HEADER */

/* MQD_DWORD_OF(reg): the index of the MQD dword that holds a banked register of the HQD */
#define MQD_HQD_FIRST	  128u
#define MQD_HQD_COUNT	  (REG_GC_CP_HQD_PQ_WPTR_HI - REG_GC_CP_MQD_BASE_ADDR + 1u)
#define MQD_DWORD_OF(reg) (MQD_HQD_FIRST + (uint32_t)(reg) - (uint32_t)REG_GC_CP_MQD_BASE_ADDR)

/*
 * MQD dwords 1..80 are the queue's registers from COMPUTE_DISPATCH_INITIATOR to the last
 * COMPUTE_USER_DATA. The CP reads and writes dwords 1..127 as one block.
 */
#define MQD_SH_FIRST 1u
#define MQD_SH_COUNT 127u
#define MQD_SH_DWORD_OF(reg)                                                                       \
	(MQD_SH_FIRST + (uint32_t)(reg) - (uint32_t)REG_GC_COMPUTE_DISPATCH_INITIATOR)
/* byte offset of a user queue's control stack from its MQD */
#define MQD_CONTROL_STACK_OFFSET 4096u

HW_STATIC_ASSERT(MQD_SH_DWORD_OF(REG_GC_COMPUTE_PGM_RSRC2) == 20);
HW_STATIC_ASSERT(MQD_SH_DWORD_OF(REG_GC_COMPUTE_USER_DATA_0) == 65);
HW_STATIC_ASSERT(MQD_HQD_COUNT == 56);
HW_STATIC_ASSERT(MQD_DWORD_OF(REG_GC_CP_HQD_PQ_CONTROL) == 145);
HW_STATIC_ASSERT(MQD_DWORD_OF(REG_GC_CP_HQD_CNTL_STACK_OFFSET) == 174);

/* dwords that the code uses by name (struct v9_mqd); dword 25 is COMPUTE_TMPRING_SIZE */
enum mqd_dword {
	MQD_HEADER = 0,
	MQD_COMPUTE_PGM_RSRC2 = 20,
	MQD_STATIC_THREAD_MGMT_SE0 = 23,
	MQD_STATIC_THREAD_MGMT_SE1 = 24,
	MQD_STATIC_THREAD_MGMT_SE2 = 26,
	MQD_STATIC_THREAD_MGMT_SE3 = 27,
	MQD_DOORBELL_ID0 = 240, /* HIQ: doorbell of a queue that could not be preempted */
};

#endif
