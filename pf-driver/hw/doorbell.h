/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Layout of the doorbell BAR (BAR2). Each VF has its own BAR2, with the same layout.
 * Source: Linux amdgpu_doorbell.h, amdkfd kfd_doorbell.c.
 */
#ifndef VGPU_HW_DOORBELL_H
#define VGPU_HW_DOORBELL_H

#include "pf-driver/hw/types.h"

#define DOORBELL_BAR_BYTES  0x200000u
#define DOORBELL_PAGE_BYTES 0x1000u
#define DOORBELL_PAGES	    (DOORBELL_BAR_BYTES / DOORBELL_PAGE_BYTES)

/*
 * Offset of each ring's doorbell in the BAR, in dwords. A driver writes the write pointer in dwords
 * (CP queues, UVD, VCE), the write pointer in bytes (SDMA queues), the read pointer in bytes (IH),
 * or the index of the last packet (AQL queues).
 */
enum doorbell_index {
	DOORBELL_KIQ = 0x0,
	DOORBELL_MEC_RING0 = 0x6,
	DOORBELL_GFX_RING0 = 0x116,
	DOORBELL_SDMA0 = 0x1e0,
	DOORBELL_SDMA1 = 0x1e4,
	DOORBELL_IH = 0x1e8,
	DOORBELL_UVD = 0x1f0,
	DOORBELL_VCE = 0x1f8,
	DOORBELL_HIQ = 0xc00,
	DOORBELL_PROCESS_FIRST = 0x1000, /* doorbells of processes, up to the end of the BAR */
};
/* doorbells of a process: two pages */
#define DOORBELL_PROCESS_DWORDS 0x800u
/*
 * Doorbells of user SDMA queues, in dwords from the start of the process's pages: first queue of
 * engine 0 and of engine 1. The doorbell of an engine's second queue is one page (0x400 dwords)
 * later.
 */
#define DOORBELL_PROCESS_SDMA0 0x1e0u
#define DOORBELL_PROCESS_SDMA1 0x1e4u

#endif
