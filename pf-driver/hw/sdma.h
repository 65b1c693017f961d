/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SDMA v4 packet opcodes (sdma.def) and the SDMA MQD of user queues. Fields are in fields.def.
 * Source: Linux amdgpu vega10_sdma_pkt_open.h, amdkfd v9_structs.h.
 */
#ifndef VGPU_HW_SDMA_H
#define VGPU_HW_SDMA_H

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/types.h"

enum sdma_opcode {
#define SDMA(name, op, dwords, action, doc) SDMA_OP_##name = (op),
#include "pf-driver/hw/sdma.def"
#undef SDMA
};

enum sdma_sub_op {
	SDMA_SUB_OP_LINEAR = 0,
	SDMA_SUB_OP_COPY_SUBWIN = 4,
	SDMA_SUB_OP_TIMESTAMP_GET = 1,
	SDMA_SUB_OP_TIMESTAMP_GET_GLOBAL = 2,
};

#define SDMA_SUBWIN_DWORDS    13u
#define SDMA_TIMESTAMP_DWORDS 3u
#define SDMA_BROADCAST_DWORDS 9u     /* linear copy to two destinations */
#define SDMA_ATOMIC_ADD_64    0x2fu  /* TC_OP_ADD_64 */
#define SDMA_POLL_FOREVER     0xfffu /* RETRY_COUNT of POLL_REGMEM */
#define SDMA_ENGINES	      2u
#define SDMA_USER_QUEUES      2u	/* per engine */
#define SDMA_MAX_COPY_BYTES   0x3fffe0u /* limit of amdgpu for one packet */

/* dword index in an SDMA MQD (128 dwords) */
enum sdma_mqd_dword {
	SDMA_MQD_RB_CNTL = 0,
	SDMA_MQD_RB_BASE = 1,
	SDMA_MQD_RB_BASE_HI = 2,
	SDMA_MQD_RB_RPTR = 3,
	SDMA_MQD_RB_RPTR_HI = 4,
	SDMA_MQD_RB_WPTR = 5,
	SDMA_MQD_RB_WPTR_HI = 6,
	SDMA_MQD_RPTR_ADDR_HI = 8,
	SDMA_MQD_RPTR_ADDR_LO = 9,
	SDMA_MQD_DOORBELL_OFFSET = 22,
	SDMA_MQD_WPTR_POLL_ADDR_HI = 28,
	SDMA_MQD_WPTR_POLL_ADDR_LO = 29,
	SDMA_MQD_PRIVATE = 32, /* vgpu only, 32 to 125: position of a preempted queue */
	SDMA_MQD_ENGINE_ID = 126,
	SDMA_MQD_QUEUE_ID = 127,
};
#define SDMA_MQD_DWORDS 128u

#endif
