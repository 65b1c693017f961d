/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Declarations of this folder: the sealed area, Landlock, the filter, refused calls. */
#ifndef VGPU_CONFINE_PARTS_H
#define VGPU_CONFINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pf-driver/confine/confine.h"
#include "pf-driver/confine/sealed.h"

/*
 * When the process ends, sanitizers read /proc/self and start a thread that traces all other
 * threads. So builds with sanitizers allow a few more calls. Landlock still confines the paths of
 * these calls, if the kernel has Landlock.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VGPU_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VGPU_IS_SANITIZED 1
#endif
#endif
#ifndef VGPU_IS_SANITIZED
#define VGPU_IS_SANITIZED 0
#endif

/*
 * The sealed area (sealed.h) has a fixed address, above vm.mmap_min_addr and below every program
 * and library. So one comparison keeps mmap(), munmap() and similar calls away from the area: the
 * filter allows only addresses of at least VGPU_SEALED_END, and NULL for mmap().
 */
#define VGPU_SEALED_BASE  0x100000ull
#define VGPU_SEALED_BYTES 0x4000ull
#define VGPU_SEALED_END	  (VGPU_SEALED_BASE + VGPU_SEALED_BYTES)

/* a path in the area, as the address of a unix socket, so that bind() and connect() can use it */
struct vgpu_sealed_slot {
	union {
		struct sockaddr_un address;
		char bytes[128];
	};
};

#define VGPU_SEALED_SLOTS (VGPU_SEALED_BYTES / sizeof(struct vgpu_sealed_slot))

/* slots in use, index 0 to vgpu_sealed_count() - 1; uses: bits of enum vgpu_path_use */
uint32_t vgpu_sealed_count(void);
const struct vgpu_sealed_slot *vgpu_sealed_slot(uint32_t index);
uint32_t vgpu_sealed_uses(uint32_t index);
/* each returns 0 or a negative errno; the comments are at the definitions */
int vgpu_sealed_freeze(void);
int vgpu_landlock_restrict(void);
int vgpu_filter_load(const struct vgpu_confine_rules *rules, const int *threads, uint32_t count);

/*
 * From now on, a refused call fails with EPERM. The first refusal of each call is logged; `program`
 * begins the line. Return: 0 or a negative errno.
 */
int vgpu_refusal_handle(const char *program);

#endif
