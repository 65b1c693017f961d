/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fixed-width integers for the hardware contract: <linux/types.h> in the kernel, <stdint.h>
 * elsewhere. The headers in hw/ include only this header, each other and the .def files.
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
#define HW_STATIC_ASSERT(condition) static_assert(condition, #condition)
#else
#define HW_STATIC_ASSERT(condition) _Static_assert(condition, #condition)
#endif

/* compile-time checks of a layout; the numbers are those of the hardware's documents */
#define HW_ASSERT_SIZE(type, bytes)	      HW_STATIC_ASSERT(sizeof(type) == (bytes))
#define HW_ASSERT_OFFSET(type, member, bytes) HW_STATIC_ASSERT(offsetof(type, member) == (bytes))

#endif
