/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * VF page table (vgpu only): the second stage of address translation, from an offset in the VRAM of
 * one VF to an offset in device VRAM. The PF core writes the table into the PF's VRAM, the first 16
 * MiB of device VRAM. The device translates every VRAM access of the VF (BAR0, GPUVM, SDMA, CP) by
 * the table, so that the VF can access only its own VRAM. There are two levels: a root table of 512
 * entries (1 GiB each) and leaf tables of 512 entries (2 MiB each). A table has 4 KiB and is
 * aligned to 4 KiB; entries are 8 bytes, little endian. VGPU_VF0_FB_TABLE_ROOT_{LO,HI} hold the
 * device VRAM offset of the root table, ORed with VALID. softgpu reads the table only when the PF
 * core writes ROOT_HI.
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
