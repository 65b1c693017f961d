/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * MMSCH v1.0, the scheduler of the video blocks, as seen by a VF: each VF passes an init table in
 * memory by the VCE_MMSCH_VF_* registers. The table starts the UVD and VCE encoders and is the only
 * source of their ring bases. Commands are in mmsch.def, fields in fields.def.
 * Source: Linux amdgpu mmsch_v1_0.h, vce_v4_0.c, uvd_v7_0.c.
 */
#ifndef VGPU_HW_MMSCH_H
#define VGPU_HW_MMSCH_H

#include "pf-driver/hw/types.h"

enum mmsch_command {
#define MMSCH(name, code, dwords, doc) MMSCH_COMMAND_##name = (code),
#include "pf-driver/hw/mmsch.def"
#undef MMSCH
};

/*
 * Head of an init table. Sizes and offsets count dwords, offsets from the head. If size and offset
 * of a block's table are both 0, the block has no table.
 */
struct mmsch_init_header {
	uint32_t version;
	uint32_t header_dwords;
	uint32_t vce_init_status;
	uint32_t uvd_init_status;
	uint32_t vce_table_offset;
	uint32_t vce_table_dwords;
	uint32_t uvd_table_offset;
	uint32_t uvd_table_dwords;
};
HW_ASSERT_SIZE(struct mmsch_init_header, 32);

#define MMSCH_VERSION	       1u
#define MMSCH_HEADER_DWORDS    8u
#define MMSCH_MAX_TABLE_DWORDS 0x1000u /* vgpu only; drivers allocate one page */

/* value that the driver writes to VCE_MMSCH_VF_MAILBOX_HOST */
#define MMSCH_HOST_INIT 0x10000001u

/* answers in VCE_MMSCH_VF_MAILBOX_RESP; drivers wait for both bits of DONE; errors are vgpu only */
enum mmsch_response {
	MMSCH_RESPONSE_DONE = 0x10000002,
	MMSCH_RESPONSE_REFUSED = 0x20000001,	  /* the VF's register write gate is shut */
	MMSCH_RESPONSE_BAD_REQUEST = 0x20000002,  /* unknown HOST word, VMID or CTX_SIZE */
	MMSCH_RESPONSE_BAD_MEMORY = 0x20000003,	  /* the table cannot be read */
	MMSCH_RESPONSE_BAD_HEADER = 0x20000004,	  /* wrong version, size or offset */
	MMSCH_RESPONSE_BAD_COMMAND = 0x20000005,  /* unknown or truncated command, or no END */
	MMSCH_RESPONSE_BAD_REGISTER = 0x20000006, /* not a register of the table's block */
	MMSCH_RESPONSE_NOT_READY = 0x20000007,	  /* a polled condition is not true */
	MMSCH_RESPONSE_BAD_RING = 0x20000008,	  /* a ring has no size, or is too large */
};

/* registers that a table may access: [FIRST, END) of its block, in dwords */
#define MMSCH_UVD_REGISTER_FIRST 0x7e00u
#define MMSCH_UVD_REGISTER_END	 0x8800u
#define MMSCH_VCE_REGISTER_FIRST 0x8800u
#define MMSCH_VCE_REGISTER_END	 0x8ec0u

#endif
