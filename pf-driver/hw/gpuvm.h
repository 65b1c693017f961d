/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * GPUVM page tables of Vega10: PDB2 PDB1 PDB0 PTB, 512 entries of 8 bytes each, 4 KiB pages.
 * VMID 0 uses the flat GART table, whose entries are PTEs. Addresses in entries without the S bit
 * are VF VRAM offsets, which the VF page table (vf_page_table.h) translates next. Source: Linux
 * amdgpu_vm.h, gmc_v9_0.c.
 */
#ifndef VGPU_HW_GPUVM_H
#define VGPU_HW_GPUVM_H

#include "pf-driver/hw/types.h"

/* addresses in packets are sign-extended: only these bits are translated */
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
#define GPUVM_PTE_PRT	      (1ull << 51)
#define GPUVM_PDE_PTE	      (1ull << 54) /* this PDE maps a huge page */
#define GPUVM_PTE_TF	      (1ull << 56)
#define GPUVM_PTE_MTYPE_SHIFT 57u
#define GPUVM_MTYPE_UC	      3ull

#define GPUVM_PTE_ADDR_MASK 0x0000fffffffff000ull
#define GPUVM_PDE_ADDR_MASK 0x0000ffffffffffc0ull

/* default address of the LDS aperture; the guest moves the aperture with SH_MEM_BASES */
#define GPUVM_LDS_APERTURE 0x0001000000000000ull

/* MC address of VRAM in VMID 0: FB_LOCATION_BASE 0xf400 << 24 */
#define GPUVM_FB_LOCATION_BASE	0xf400u
#define GPUVM_FB_LOCATION_SHIFT 24u

/* bit of a root address: the root is valid */
#define GPUVM_ROOT_VALID	 (1ull << 0)
#define GPUVM_HUBS		 2u
#define GPUVM_INVALIDATE_ENGINES 18u

#endif
