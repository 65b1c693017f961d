/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A range map records who owns each unit of a resource that is divided into equal units. The map of
 * the VRAM is `vram` of struct vgpu_pf. A unit is free or has one owner: a VF number, or
 * VGPU_RANGE_OWNER_PF. A unit is clean if it is known to hold zeroes, else dirty.
 * vgpu_pf_range_claim() takes one range of free units if one is long enough, otherwise scattered
 * units. Each function is documented in range.c.
 */
#ifndef VGPU_CORE_RANGE_H
#define VGPU_CORE_RANGE_H

#include "pf-driver/core/base/types.h"

VGPU_C_BEGIN

#define VGPU_RANGE_UNITS    4096u /* maximum number of units */
#define VGPU_RANGE_OWNER_PF 0xffu
#define VGPU_RANGE_FREE	    0u /* owner of free units */

struct vgpu_range_map {
	uint32_t count;			 /* units that exist */
	uint8_t owner[VGPU_RANGE_UNITS]; /* by unit */
	uint8_t dirty[VGPU_RANGE_UNITS]; /* by unit: 1 dirty, 0 clean */
};

/* consecutive units */
struct vgpu_range {
	uint32_t first; /* number of the first unit */
	uint32_t count;
};

void vgpu_pf_range_init(struct vgpu_range_map *map, uint32_t count);
int vgpu_pf_range_reserve(struct vgpu_range_map *map, struct vgpu_range range, uint8_t owner);
int vgpu_pf_range_claim(struct vgpu_range_map *map, uint32_t count, uint8_t owner);
uint32_t vgpu_pf_range_release(struct vgpu_range_map *map, uint8_t owner);
void vgpu_pf_range_set_clean(struct vgpu_range_map *map, struct vgpu_range range);
void vgpu_pf_range_set_all_dirty(struct vgpu_range_map *map);
void vgpu_pf_range_set_dirty(struct vgpu_range_map *map, uint8_t owner);
uint32_t vgpu_pf_range_free_units(const struct vgpu_range_map *map);
uint32_t vgpu_pf_range_owned_units(const struct vgpu_range_map *map, uint8_t owner);
bool vgpu_pf_range_next(const struct vgpu_range_map *map, uint8_t owner, struct vgpu_range *range);
bool vgpu_pf_range_next_dirty(const struct vgpu_range_map *map, uint8_t owner,
			      struct vgpu_range *range);

VGPU_C_END

#endif
