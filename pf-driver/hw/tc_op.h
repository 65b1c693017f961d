/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Codes of the atomic operations in packets, expanded from tc_op.def.
 */
#ifndef VGPU_HW_TC_OP_H
#define VGPU_HW_TC_OP_H

enum tc_op {
#define TC_OP(name, code, bits, doc) TC_OP_##name = (code),
#include "pf-driver/hw/tc_op.def"
#undef TC_OP
};

/* bit of a code: the operation does not return the old value */
#define TC_OP_NO_RETURN 0x40u

#endif
