/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fixed-width integers for both homes of the hardware contract: the kernel's own names where the
 * kernel compiles it, <stdint.h> elsewhere. Every other header in hw/ includes only this one.
 */
#ifndef VGPU_HW_TYPES_H
#define VGPU_HW_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/stddef.h>
#include <linux/build_bug.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
#define HW_STATIC_ASSERT(claim) static_assert(claim, #claim)
#else
#define HW_STATIC_ASSERT(claim) _Static_assert(claim, #claim)
#endif

/* size and offset of a layout, as the documents give them */
#define HW_ASSERT_SIZE(type, bytes)	      HW_STATIC_ASSERT(sizeof(type) == (bytes))
#define HW_ASSERT_OFFSET(type, member, bytes) HW_STATIC_ASSERT(offsetof(type, member) == (bytes))

#endif
