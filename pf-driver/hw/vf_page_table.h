/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * VF page table (vgpu only): the second translation stage, from the VRAM of one VF to VRAM of the
 * device. The PF core writes the table into PF VRAM. With the table, the device translates accesses
 * of BAR0, GPUVM, SDMA and CP, so that a VF can access only its own VRAM. There are two levels: a
 * root of 512 entries (1 GiB each) and leaf tables of 512 entries (2 MiB each). A table is 4 KiB,
 * aligned to 4 KiB; entries are 8 bytes LE. VGPU_VF0_FB_TABLE_ROOT_{LO,HI} hold the root's device
 * VRAM offset | VALID.
 */
#ifndef VGPU_HW_VF_PAGE_TABLE_H
#define VGPU_HW_VF_PAGE_TABLE_H

#include "pf-driver/hw/types.h"

#define VF_PAGE_TABLE_ENTRIES	 512u
#define VF_PAGE_TABLE_BYTES	 4096u
#define VF_PAGE_TABLE_LEAF_SHIFT 21u /* 2 MiB */
#define VF_PAGE_TABLE_ROOT_SHIFT 30u /* 1 GiB */

#define VF_PAGE_TABLE_VALID	(1ull << 0)
#define VF_PAGE_TABLE_ADDR_MASK 0x0000fffffffff000ull

/* unit in which VRAM is provisioned */
#define VGPU_VRAM_UNIT_SHIFT 24u /* 16 MiB */
#define VGPU_VRAM_UNIT_BYTES (1ull << VGPU_VRAM_UNIT_SHIFT)

#endif
