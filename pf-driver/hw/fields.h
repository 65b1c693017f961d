/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bit fields of registers and packet dwords, expanded from fields.def.
 *
 *   HW_FIELD_MASK(CP_HQD_VMID, VMID)       mask of the field's bits in the register or dword
 *   HW_GET(CP_HQD_VMID, VMID, value)       number in the field of `value`
 *   HW_PREP(CP_HQD_VMID, VMID, number)     `number` shifted to the field, excess bits dropped
 *   HW_SET(CP_HQD_VMID, VMID, value, n)    `value` with the number n in the field
 */
#ifndef VGPU_HW_FIELDS_H
#define VGPU_HW_FIELDS_H

#include "pf-driver/hw/types.h"

enum hw_field_shift {
#define FIELD(where, name, first, count, doc) where##__##name##__SHIFT = (first),
#include "pf-driver/hw/fields.def"
#undef FIELD
};

enum hw_field_width {
#define FIELD(where, name, first, count, doc) where##__##name##__WIDTH = (count),
#include "pf-driver/hw/fields.def"
#undef FIELD
};

#define HW_FIELD_MASK(where, name)                                                                 \
	((uint32_t)(((1ull << where##__##name##__WIDTH) - 1) << where##__##name##__SHIFT))
#define HW_GET(where, name, value)                                                                 \
	(((uint32_t)(value)&HW_FIELD_MASK(where, name)) >> where##__##name##__SHIFT)
#define HW_PREP(where, name, number)                                                               \
	(((uint32_t)(number) << where##__##name##__SHIFT) & HW_FIELD_MASK(where, name))
#define HW_SET(where, name, value, number)                                                         \
	(((uint32_t)(value) & ~HW_FIELD_MASK(where, name)) | HW_PREP(where, name, number))

#endif
