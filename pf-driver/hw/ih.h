/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The rings of the interrupt handler (IH): their entries, called interrupt vectors (IV), of 32
 * bytes each, and the client and source numbers that a VF needs. Source: Linux amdgpu
 * soc15_ih_clientid.h, ivsrcid headers, amdkfd kfd_int_process_v9.c.
 */
#ifndef VGPU_HW_IH_H
#define VGPU_HW_IH_H

#include "pf-driver/hw/types.h"

/*
 * An entry of the ring. KFD handles only entries that have one of its VMIDs and a PASID. If an
 * entry signals a KFD event, KFD reads the event's value in memory at once, so the device must
 * write the value before the entry (Linux kfd_int_process_v9.c).
 */
struct ih_iv_entry {
	uint8_t client_id;
	uint8_t source_id;
	uint8_t ring_id;
	uint8_t vmid; /* [3:0] VMID; [7] its hub: 1 MMHUB, 0 GFX */
	uint32_t timestamp_lo;
	uint32_t timestamp_hi; /* [15:0] */
	uint16_t pasid;
	uint8_t node_id;
	uint8_t reserved;
	uint32_t source_data[4];
};
HW_ASSERT_SIZE(struct ih_iv_entry, 32);

/* ring pointers are byte offsets; the device writes only the write pointer of ring 0 to memory */
#define IH_RINGS	  3u
#define IH_ENTRY_BYTES	  32u
#define IH_MAX_RING_BYTES 0x40000u
/* where drivers place the copy of ring 0's write pointer in memory: bytes from the ring's end */
#define IH_WPTR_SHADOW_OFFSET 0u

enum ih_client {
	IH_CLIENT_BIF = 3,
	IH_CLIENT_SDMA0 = 8,
	IH_CLIENT_SDMA1 = 9,
	IH_CLIENT_SE0SH = 10,
	IH_CLIENT_UVD = 0x10,
	IH_CLIENT_VCE0 = 0x11,
	IH_CLIENT_VMC = 0x12,
	IH_CLIENT_GRBM_CP = 20,
	IH_CLIENT_UTCL2 = 27,
};

enum ih_source {
	IH_SOURCE_VM_FAULT = 0,
	IH_SOURCE_UVD_ENC = 119, /* general purpose encoder ring */
	IH_SOURCE_MAILBOX_MSG = 135,
	IH_SOURCE_MAILBOX_ACK = 138,
	IH_SOURCE_VCE_TRAP = 167, /* source data 0: ring */
	IH_SOURCE_CP_EOP = 181,
	IH_SOURCE_CP_BAD_OPCODE = 183,
	IH_SOURCE_CP_PRIV_REG = 184,
	IH_SOURCE_CP_PRIV_INSTR = 185,
	IH_SOURCE_SDMA_TRAP = 224,
	IH_SOURCE_SQ = 239,
};

/*
 * An entry of IH_SOURCE_VM_FAULT: source_data[0] is VA >> 12; IH_FAULT_DATA1_* are bits of
 * source_data[1], IH_FAULT_RING_* bits of ring_id.
 */
#define IH_FAULT_DATA1_VA_HI_MASK 0xfu /* VA >> 44 */
#define IH_FAULT_DATA1_WRITE	  (1u << 5)
#define IH_FAULT_RING_VALID	  (1u << 3) /* clear for a permission fault */
#define IH_FAULT_RING_READ	  (1u << 4)
#define IH_FAULT_RING_WRITE	  (1u << 5)

#define IH_SQ_ENCODING_WAVE 1u /* SQ_INTERRUPT_0.ENCODING of s_sendmsg(MSG_INTERRUPT) */

/*
 * CP_BAD_OPCODE_0.ERROR, source data 0 of IH_SOURCE_CP_BAD_OPCODE for a user queue. KFD passes
 * the error to the runtime (Linux 6.12 kfd_int_process_v9.c; uapi kfd_ioctl.h, EC_QUEUE_PACKET_*).
 */
enum ih_packet_error {
	IH_PACKET_ERROR_NONE = 0,
	IH_PACKET_ERROR_DIMENSIONS = 16,
	IH_PACKET_ERROR_GROUP_MEMORY = 17,
	IH_PACKET_ERROR_CODE_OBJECT = 18,
	IH_PACKET_ERROR_UNSUPPORTED = 20,
	IH_PACKET_ERROR_WORKGROUP_SIZE = 21,
	IH_PACKET_ERROR_REGISTERS = 22,
	IH_PACKET_ERROR_VENDOR_PACKET = 23,
};

/* ring_id of a CP end-of-pipe IV */
#define IH_CP_RING_ID(me, pipe, queue)                                                             \
	((uint8_t)(((pipe)&3u) | (((me)&3u) << 2) | (((queue)&7u) << 4)))

#endif
