/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Layout of the PF's own VRAM, the first 16 MiB of the device. A new core finds the checkpoint and
 * the VF page tables of the previous core there, so a change of the layout requires a new
 * CHECKPOINT_VERSION (vf/checkpoint.c).
 *
 *   0        checkpoint: record of all VFs, two copies of 4 KiB
 *   16 KiB   checkpoint: record of the run table, two copies of 16 KiB
 *   1 MiB    VF page tables, 512 KiB for each VF: root table, then its leaf tables in order
 */
#ifndef VGPU_CORE_PF_VRAM_H
#define VGPU_CORE_PF_VRAM_H

#include "pf-driver/core/base/types.h"
#include "pf-driver/hw/vf_page_table.h"

/* offsets in device VRAM; _BYTES: size of one copy; STRIDE: space for the tables of one VF */
#define PF_VRAM_CHECKPOINT	   0u
#define PF_VRAM_CHECKPOINT_BYTES   0x1000u
#define PF_VRAM_RUN_TABLE	   0x4000u
#define PF_VRAM_RUN_TABLE_BYTES	   0x4000u
#define PF_VRAM_PAGE_TABLES	   0x100000u
#define PF_VRAM_PAGE_TABLES_STRIDE 0x80000u
#define PF_VRAM_LEAF_TABLES_PER_VF (PF_VRAM_PAGE_TABLES_STRIDE / VF_PAGE_TABLE_BYTES - 1)
/* the largest VRAM that the page table of a VF can map */
#define PF_VRAM_VF_MAX_BYTES ((uint64_t)PF_VRAM_LEAF_TABLES_PER_VF << VF_PAGE_TABLE_ROOT_SHIFT)

/* device VRAM offset of the root table of a VF; vf: from 1 */
static inline uint64_t pf_vram_root(uint32_t vf)
{
	return PF_VRAM_PAGE_TABLES + (uint64_t)(vf - 1) * PF_VRAM_PAGE_TABLES_STRIDE;
}

/* device VRAM offset of a leaf table of a VF; vf: from 1; leaf: from 0 */
static inline uint64_t pf_vram_leaf(uint32_t vf, uint32_t leaf)
{
	return pf_vram_root(vf) + (uint64_t)(leaf + 1) * VF_PAGE_TABLE_BYTES;
}

#endif
