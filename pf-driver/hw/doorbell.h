/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Layout of the doorbell BAR (BAR2). Each VF has a BAR of its own, so all VFs have the same layout.
 * Source: Linux amdgpu_doorbell.h, amdkfd kfd_doorbell.c.
 */
#ifndef VGPU_HW_DOORBELL_H
#define VGPU_HW_DOORBELL_H

#include "pf-driver/hw/types.h"

#define DOORBELL_BAR_BYTES  0x200000u
#define DOORBELL_PAGE_BYTES 0x1000u
#define DOORBELL_PAGES	    (DOORBELL_BAR_BYTES / DOORBELL_PAGE_BYTES)

/*
 * The doorbell of each ring, as an offset in the BAR in dwords. A driver writes to the doorbell the
 * write pointer in dwords (CP queues), the write pointer in bytes (SDMA queues), the read pointer
 * in bytes (IH), or the index of the last packet (AQL queues).
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
	DOORBELL_PROCESS_FIRST = 0x1000,
};
#define DOORBELL_PROCESS_DWORDS 0x800u
/*
 * Each process has two pages. The doorbell of the first user queue of each SDMA engine, in dwords
 * from the start of these pages; the second queue's doorbell is 0x400 dwords later.
 */
#define DOORBELL_PROCESS_SDMA0 0x1e0u
#define DOORBELL_PROCESS_SDMA1 0x1e4u

#endif
