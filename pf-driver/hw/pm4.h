/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PM4 packet format: opcodes (expanded from pm4.def), selectors and constants. Fields of the packet
 * dwords are in fields.def.
 */
#ifndef VGPU_HW_PM4_H
#define VGPU_HW_PM4_H

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/types.h"

enum pm4_opcode {
#define PM4(name, opcode, min_body, max_body, action, doc) PM4_OP_##name = (opcode),
#include "pf-driver/hw/pm4.def"
#undef PM4
};

#define PM4_TYPE_3	   3u
#define PM4_TYPE_2	   2u
#define PM4_COUNT_NO_BODY  0x3fffu /* COUNT of a NOP that is only a header */
#define PM4_MAX_IB_NESTING 3u

#define PM4_HEADER_OF(opcode, body_dwords)                                                         \
	(HW_PREP(PM4_HEADER, TYPE, PM4_TYPE_3) | HW_PREP(PM4_HEADER, OPCODE, opcode) |             \
	 HW_PREP(PM4_HEADER, COUNT, (body_dwords)-1))

enum pm4_compare {
	PM4_COMPARE_LESS = 1,
	PM4_COMPARE_LESS_EQUAL = 2,
	PM4_COMPARE_EQUAL = 3,
	PM4_COMPARE_NOT_EQUAL = 4,
	PM4_COMPARE_GREATER_EQUAL = 5,
	PM4_COMPARE_GREATER = 6,
};

enum pm4_engine_sel {
	PM4_ENGINE_COMPUTE = 0,
	PM4_ENGINE_HIQ = 1,
	PM4_ENGINE_SDMA0 = 2,
	PM4_ENGINE_SDMA1 = 3,
	PM4_ENGINE_GFX = 4,
};

enum pm4_unmap_action {
	PM4_UNMAP_PREEMPT = 0,
	PM4_UNMAP_RESET = 1,
	PM4_UNMAP_PREEMPT_NO_UNMAP = 3,
};

enum pm4_unmap_select {
	PM4_UNMAP_BY_DOORBELL = 0,
	PM4_UNMAP_BY_PASID = 1,
	PM4_UNMAP_ALL = 2,
	PM4_UNMAP_ALL_NON_STATIC = 3,
};

/*
 * COPY_DATA: PM4_COPY_DST_MEMORY is a value of DST_SEL, PM4_COPY_REGISTER of DST_SEL and SRC_SEL,
 * the others of SRC_SEL. fields.def lists all values.
 */
enum pm4_copy_select {
	PM4_COPY_REGISTER = 0,
	PM4_COPY_MEMORY = 1,
	PM4_COPY_DST_MEMORY = 5,
	PM4_COPY_IMMEDIATE = 5,
	PM4_COPY_GPU_CLOCK = 9,
};

/* HQDs of a VF: MEC1 and MEC2 (compute processors), each with 4 pipes of 8 queues */
#define CP_MEC_COUNT	   2u
#define CP_PIPES_PER_MEC   4u
#define CP_QUEUES_PER_PIPE 8u
#define CP_HQD_COUNT	   (CP_MEC_COUNT * CP_PIPES_PER_MEC * CP_QUEUES_PER_PIPE)
#define CP_USER_HQDS	   32u /* the queues of MEC1: bits 31:0 of queue_mask in SET_RESOURCES */
#define CP_VMIDS	   16u
#define CP_FIRST_KFD_VMID  8u

/* DST_SEL, INT_SEL and DATA_SEL of RELEASE_MEM (Linux amdkfd kfd_pm4_headers_ai.h) */
enum pm4_release_destination {
	PM4_RELEASE_TO_MEMORY = 0,
	PM4_RELEASE_TO_L2 = 1,
	PM4_RELEASE_TO_WPTR_REGISTER = 2,
	PM4_RELEASE_TO_WPTR_POLL_BIT = 3,
};

enum pm4_release_interrupt {
	PM4_RELEASE_NO_INTERRUPT = 0,
	PM4_RELEASE_INTERRUPT_ONLY = 1,
	PM4_RELEASE_INTERRUPT_AFTER_WRITE = 2,
	PM4_RELEASE_DATA_AFTER_CONFIRM = 3,
	PM4_RELEASE_INTERRUPT_ALWAYS = 4,
	PM4_RELEASE_INTERRUPT_IF_32 = 5,
	PM4_RELEASE_INTERRUPT_IF_64 = 6,
};

enum pm4_release_data {
	PM4_RELEASE_NO_DATA = 0,
	PM4_RELEASE_DATA_32 = 1,
	PM4_RELEASE_DATA_64 = 2,
	PM4_RELEASE_GPU_CLOCK = 3,
	PM4_RELEASE_CP_PERFCOUNTER = 4,
	PM4_RELEASE_GDS_DATA = 5,
};

#endif
