/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The platform security processor (PSP) as seen by a VF. The VF's driver writes two kinds of
 * commands to C2PMSG registers: those that create, destroy or run the PSP ring (GPCOM), and
 * GBR_IH_SET. All other commands go through the ring: a frame of the ring points to a command
 * buffer, which also receives the response. Source: Linux amdgpu psp_gfx_if.h, psp_v3_1.c.
 */
#ifndef VGPU_HW_PSP_H
#define VGPU_HW_PSP_H

#include "pf-driver/hw/types.h"

#define PSP_RING_DWORDS	   1024u
#define PSP_FRAME_DWORDS   16u
#define PSP_TMR_BYTES	   0x400000u /* trusted memory region in responses; max firmware size */
#define PSP_FIRMWARE_TYPES 128u	     /* a type of firmware is below this number */

/* values that the driver writes to C2PMSG_101 */
enum psp_ring_command {
	PSP_RING_CREATE = 0x20000,
	PSP_RING_CONSUME = 0x90000, /* C2PMSG_102 has the write pointer in dwords */
	PSP_RING_DESTROY = 0xc0000,
};
#define PSP_RING_COMMAND_MASK 0xf0000u

/*
 * Command in C2PMSG_64: sets a register of the interrupt handler (IH). Before the command, the
 * driver writes the id of the register to C2PMSG_69 and its value to C2PMSG_70. softgpu accepts the
 * command and ignores both.
 */
#define PSP_GBR_IH_SET 0x80000u

/* reply in C2PMSG_64 and C2PMSG_101 */
#define PSP_REPLY_READY	      0x80000000u
#define PSP_REPLY_STATUS_MASK 0xffffu
enum psp_reply_status {
	PSP_REPLY_OK = 0,
	PSP_REPLY_REFUSED = 1, /* vgpu only: the VF's register write gate is shut */
	PSP_REPLY_BAD_COMMAND = 2,
	PSP_REPLY_BAD_MEMORY = 3,
};

enum psp_command_id {
	PSP_CMD_LOAD_IP_FW = 6,
	PSP_CMD_SETUP_VMR = 9,
	PSP_CMD_DESTROY_VMR = 0xa,
	PSP_CMD_PROG_REG = 0xb,
};

/* values of psp_response.status, which are error numbers of the TEE */
#define PSP_STATUS_OK		  0u
#define PSP_STATUS_BAD_PARAMETERS 0xffff0006u
#define PSP_STATUS_NOT_SUPPORTED  0xffff000au

/*
 * One ring entry. command_lo/hi: address of the command buffer. The device writes fence_value to
 * the address fence_lo/hi when the command has completed.
 */
struct psp_frame {
	uint32_t command_lo;
	uint32_t command_hi;
	uint32_t command_bytes;
	uint32_t fence_lo;
	uint32_t fence_hi;
	uint32_t fence_value;
	uint32_t sid_lo;
	uint32_t sid_hi;
	uint8_t vmid;
	uint8_t frame_type;
	uint8_t reserved[30];
};
HW_ASSERT_SIZE(struct psp_frame, 64);
HW_ASSERT_OFFSET(struct psp_frame, vmid, 32);

/* head of a command buffer; `id` is enum psp_command_id and decides the meaning of words[] */
struct psp_command {
	uint32_t size;
	uint32_t version;
	uint32_t id;
	uint32_t unused[4];
	uint32_t words[5];
};
HW_ASSERT_SIZE(struct psp_command, 48);
HW_ASSERT_OFFSET(struct psp_command, words, 28);

/* words[] of LOAD_IP_FW: address lo, address hi, bytes, type of the firmware */
enum psp_load_ip_fw_word {
	PSP_LOAD_BYTES = 2,
	PSP_LOAD_TYPE = 3,
};
/* words[] of PROG_REG: value, id of the register; ids 0-2 are IH_RB_CNTL of ring 0-2 */
enum psp_prog_reg_word {
	PSP_PROG_VALUE = 0,
	PSP_PROG_REGISTER = 1,
};
#define PSP_PROG_IH_RINGS 3u

/* byte offset of the response in a command buffer */
#define PSP_RESPONSE_OFFSET 864u
/* response to a command; the device writes it before the frame's fence value */
struct psp_response {
	uint32_t status;
	uint32_t session_id;
	uint32_t firmware_lo;
	uint32_t firmware_hi;
	uint32_t tmr_bytes;
};
HW_ASSERT_SIZE(struct psp_response, 20);

#endif
