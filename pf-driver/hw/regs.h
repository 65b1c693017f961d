/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Register numbers, expanded from regs.def: REG_<BLOCK>_<NAME> is a dword offset into BAR5.
 * Element n of an array is REG_<BLOCK>_<NAME> + n * REG_STRIDE_<BLOCK>_<NAME>.
 * Fields of registers and packets are in fields.h.
 */
#ifndef VGPU_HW_REGS_H
#define VGPU_HW_REGS_H

#include "pf-driver/hw/types.h"

enum hw_reg {
#define REG(block, name, offset, reset, pf, vf, doc) REG_##block##_##name = (offset),
#define REG_ARRAY(block, name, offset, count, stride, reset, pf, vf, doc)                          \
	REG_##block##_##name = (offset),
#include "pf-driver/hw/regs.def"
#undef REG
#undef REG_ARRAY
};

enum hw_reg_array {
#define REG(block, name, offset, reset, pf, vf, doc)
#define REG_ARRAY(block, name, offset, count, stride, reset, pf, vf, doc)                          \
	REG_COUNT_##block##_##name = (count), REG_STRIDE_##block##_##name = (stride),
#include "pf-driver/hw/regs.def"
#undef REG
#undef REG_ARRAY
};

/* MMIO accesses that a function may make to its own register; regs.def explains the values */
enum hw_reg_access {
	HW_REG_ACCESS_NA,
	HW_REG_ACCESS_RO,
	HW_REG_ACCESS_FA,
	HW_REG_ACCESS_RW,
};

/* BAR5: 512 KiB of dwords */
#define HW_REG_COUNT	 0x20000u
#define HW_REG_BAR_BYTES 0x80000u

/* dwords of a VF's bank in the PF-only range: VF n has REG_VGPU_VF0_* + n * stride */
#define HW_VGPU_BANK_STRIDE 0x20u

/* first register (dword offset) that a SET_*_REG packet can write; its OFFSET counts from here */
#define HW_REG_BASE_CONFIG  0x2000u
#define HW_REG_BASE_SH	    0x2c00u
#define HW_REG_BASE_CONTEXT 0xa000u
#define HW_REG_BASE_UCONFIG 0xc000u
/* end of these ranges: one after the last register */
#define HW_REG_END_CONFIG  0x2c00u
#define HW_REG_END_SH	   0x3000u
#define HW_REG_END_CONTEXT 0xa400u
#define HW_REG_END_UCONFIG 0xc400u

#endif
