/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * GPUVM page tables of Vega10. There are four levels (PDB2, PDB1, PDB0, PTB) of tables with 512
 * entries of 8 bytes; a page is 4 KiB. amdgpu gives VMID 0 one flat table of PTEs, the GART. The
 * address in an entry is a bus address if GPUVM_PTE_SYSTEM is set. Otherwise it is an offset in the
 * VF's VRAM, which the VF page table (vf_page_table.h) translates next.
 * Source: Linux amdgpu_vm.h, gmc_v9_0.c.
 */
#ifndef VGPU_HW_GPUVM_H
#define VGPU_HW_GPUVM_H

#include "pf-driver/hw/types.h"

/* translated bits of an address; packets hold addresses sign-extended to 64 bits */
#define GPUVM_VA_BITS	 48u
#define GPUVM_PAGE_SHIFT 12u
#define GPUVM_LEVEL_BITS 9u
#define GPUVM_LEVELS	 4u
#define GPUVM_ENTRIES	 512u

#define GPUVM_PTE_VALID	      (1ull << 0)
#define GPUVM_PTE_SYSTEM      (1ull << 1)
#define GPUVM_PTE_SNOOPED     (1ull << 2)
#define GPUVM_PTE_EXECUTABLE  (1ull << 4)
#define GPUVM_PTE_READABLE    (1ull << 5)
#define GPUVM_PTE_WRITEABLE   (1ull << 6)
#define GPUVM_PTE_PRT	      (1ull << 51) /* if not VALID: reads give 0, writes are dropped */
#define GPUVM_PDE_PTE	      (1ull << 54) /* this PDE maps a huge page */
#define GPUVM_PTE_TF	      (1ull << 56) /* translate further; softgpu ignores it */
#define GPUVM_PTE_MTYPE_SHIFT 57u
#define GPUVM_MTYPE_UC	      3ull

#define GPUVM_PTE_ADDR_MASK 0x0000fffffffff000ull
#define GPUVM_PDE_ADDR_MASK 0x0000ffffffffffc0ull

/* default start of the addresses that flat instructions send to LDS; SH_MEM_BASES can change it */
#define GPUVM_LDS_APERTURE 0x0001000000000000ull

/* MC address of VRAM in VMID 0: FB_LOCATION_BASE 0xf400 << 24 */
#define GPUVM_FB_LOCATION_BASE	0xf400u
#define GPUVM_FB_LOCATION_SHIFT 24u

/* bit of a root address (VM_CONTEXTn_PAGE_TABLE_BASE_ADDR): the root is valid */
#define GPUVM_ROOT_VALID	 (1ull << 0)
#define GPUVM_HUBS		 2u
#define GPUVM_INVALIDATE_ENGINES 18u

#endif
