/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * This header gives the PF core what it uses of the C headers and the C library: fixed-width
 * integers, bool, va_list, four memory functions, vsnprintf() and errno values. The kernel module
 * and the process vgpu-pf compile the same files of the core (freestanding C11 with extensions of
 * GCC), so this is the only header in core/ that checks __KERNEL__. The header also has helpers.
 */
#ifndef VGPU_CORE_TYPES_H
#define VGPU_CORE_TYPES_H

#include "pf-driver/hw/types.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/stdarg.h>
#include <linux/string.h>

/* in a process, <stdint.h> defines these limits; the kernel has no such header */
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#ifndef INT64_MAX
#define INT64_MAX S64_MAX
#endif
#else

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
#include <cstring>
#else
void *memcpy(void *dest, const void *src, size_t bytes);
void *memmove(void *dest, const void *src, size_t bytes);
void *memset(void *dest, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
int vsnprintf(char *text, size_t bytes, const char *format, va_list args);
#endif

/* as in Linux, because the uapi returns -errno; a C++ file may have included <cerrno> already */
#ifndef EPERM
#define EPERM	    1
#define ENOENT	    2
#define EIO	    5
#define E2BIG	    7
#define EAGAIN	    11
#define ENOMEM	    12
#define EBUSY	    16
#define ENODEV	    19
#define EINVAL	    22
#define ENOSPC	    28
#define ERANGE	    34
#define EBADMSG	    74
#define EOPNOTSUPP  95
#define ETIMEDOUT   110
#define EALREADY    114
#define EINPROGRESS 115
#define ESTALE	    116
#define EUCLEAN	    117
#define ECANCELED   125
#endif

#endif /* !__KERNEL__ */

/* enclose the declarations of a header that C++ files include as well */
#ifdef __cplusplus
#define VGPU_C_BEGIN extern "C" {
#define VGPU_C_END   }
#else
#define VGPU_C_BEGIN
#define VGPU_C_END
#endif

#define VGPU_NS_PER_US 1000ull
#define VGPU_NS_PER_MS 1000000ull
#define VGPU_NS_PER_S  1000000000ull

#define VGPU_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline uint64_t vgpu_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t vgpu_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
