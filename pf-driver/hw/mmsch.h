/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * MMSCH v1.0, the scheduler of the video blocks, as seen by a VF. The VF's driver builds an init
 * table in memory and passes its address in the VCE_MMSCH_VF_* registers. The table starts the UVD
 * and VCE encoders and sets the bases of their rings, which a VF cannot write by MMIO. Commands are
 * in mmsch.def, fields in fields.def.
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
 * Head of an init table. A list of commands per block follows (vce_table, uvd_table). Sizes and
 * offsets are in dwords; offsets count from the start of the head. If size and offset of a list are
 * both 0, the block has no list.
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
#define MMSCH_MAX_TABLE_DWORDS 0x1000u /* 16 KiB; vgpu only; a driver allocates one page */

/* value that the driver writes to VCE_MMSCH_VF_MAILBOX_HOST */
#define MMSCH_HOST_INIT 0x10000001u

/* answers in VCE_MMSCH_VF_MAILBOX_RESP; drivers wait for DONE; the error codes are vgpu only */
enum mmsch_response {
	MMSCH_RESPONSE_DONE = 0x10000002,
	MMSCH_RESPONSE_REFUSED = 0x20000001,	  /* the VF's register write gate is shut */
	MMSCH_RESPONSE_BAD_REQUEST = 0x20000002,  /* wrong HOST word, VMID or CTX_SIZE */
	MMSCH_RESPONSE_BAD_MEMORY = 0x20000003,	  /* the table cannot be read */
	MMSCH_RESPONSE_BAD_HEADER = 0x20000004,	  /* wrong version, size or offset */
	MMSCH_RESPONSE_BAD_COMMAND = 0x20000005,  /* unknown or truncated command, or no END */
	MMSCH_RESPONSE_BAD_REGISTER = 0x20000006, /* not a register of the list's block */
	MMSCH_RESPONSE_NOT_READY = 0x20000007,	  /* a polled condition is false */
	MMSCH_RESPONSE_BAD_RING = 0x20000008,	  /* a ring has no size, or is too large */
};

/* registers that a block's list may access: dword offsets [FIRST, END) in BAR5 */
#define MMSCH_UVD_REGISTER_FIRST 0x7e00u
#define MMSCH_UVD_REGISTER_END	 0x8800u
#define MMSCH_VCE_REGISTER_FIRST 0x8800u
#define MMSCH_VCE_REGISTER_END	 0x8ec0u

#endif
