// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Gives units of a resource to owners, and records which units are clean (range.h). */
#include "pf-driver/core/resource/range.h"

static bool is_inside(const struct vgpu_range_map *map, struct vgpu_range range)
{
	return range.count > 0 && range.first < map->count &&
	       range.count <= map->count - range.first;
}

/* number of consecutive units, from first on, that belong to the owner */
static uint32_t range_length(const struct vgpu_range_map *map, uint32_t first, uint8_t owner)
{
	uint32_t end = first;

	while (end < map->count && map->owner[end] == owner)
		end++;
	return end - first;
}

/* finds the shortest range with at least `count` free units, so that long ranges stay whole */
static bool find_best_fit(const struct vgpu_range_map *map, uint32_t count, uint32_t *found)
{
	uint32_t best = UINT32_MAX;
	uint32_t unit = 0;

	while (unit < map->count) {
		uint32_t length = range_length(map, unit, VGPU_RANGE_FREE);

		if (length >= count && length < best) {
			best = length;
			*found = unit;
		}
		unit += length ? length : 1;
	}
	return best != UINT32_MAX;
}

static void claim_scattered(struct vgpu_range_map *map, uint32_t count, uint8_t owner)
{
	for (uint32_t unit = 0; count > 0; unit++) {
		if (map->owner[unit] != VGPU_RANGE_FREE)
			continue;
		map->owner[unit] = owner;
		count--;
	}
}

/* Initialise a map of `count` units, at most VGPU_RANGE_UNITS. All units are free and dirty. */
void vgpu_pf_range_init(struct vgpu_range_map *map, uint32_t count)
{
	map->count = count < VGPU_RANGE_UNITS ? count : VGPU_RANGE_UNITS;
	memset(map->owner, VGPU_RANGE_FREE, sizeof(map->owner));
	vgpu_pf_range_set_all_dirty(map);
}

/* Mark all units dirty: their contents are unknown. */
void vgpu_pf_range_set_all_dirty(struct vgpu_range_map *map)
{
	memset(map->dirty, 1, sizeof(map->dirty));
}

/*
 * Give certain units to an owner. Return: 0, -ERANGE if the range is empty or a unit does not
 * exist, or -EBUSY if a unit has an owner. After an error nothing has changed.
 */
int vgpu_pf_range_reserve(struct vgpu_range_map *map, struct vgpu_range range, uint8_t owner)
{
	if (!is_inside(map, range))
		return -ERANGE;
	if (range_length(map, range.first, VGPU_RANGE_FREE) < range.count)
		return -EBUSY;
	memset(&map->owner[range.first], owner, range.count);
	return 0;
}

/*
 * Give `count` free units to an owner: one range if possible, otherwise scattered units. Return: 0,
 * -EINVAL for 0 units, or -ENOSPC if not enough units are free. After an error nothing has changed.
 */
int vgpu_pf_range_claim(struct vgpu_range_map *map, uint32_t count, uint8_t owner)
{
	uint32_t first;

	if (count == 0)
		return -EINVAL;
	if (find_best_fit(map, count, &first)) {
		memset(&map->owner[first], owner, count);
		return 0;
	}
	if (vgpu_pf_range_free_units(map) < count)
		return -ENOSPC;
	claim_scattered(map, count, owner);
	return 0;
}

/* Free all units of an owner; dirty units stay dirty. Return: number of units freed. */
uint32_t vgpu_pf_range_release(struct vgpu_range_map *map, uint8_t owner)
{
	uint32_t freed = 0;

	for (uint32_t unit = 0; unit < map->count; unit++) {
		if (map->owner[unit] != owner)
			continue;
		map->owner[unit] = VGPU_RANGE_FREE;
		freed++;
	}
	return freed;
}

/* Mark units clean: they hold zeroes. A range that is not inside the map is ignored. */
void vgpu_pf_range_set_clean(struct vgpu_range_map *map, struct vgpu_range range)
{
	if (is_inside(map, range))
		memset(&map->dirty[range.first], 0, range.count);
}

/* Mark all units of an owner dirty, because the owner may have written to them. */
void vgpu_pf_range_set_dirty(struct vgpu_range_map *map, uint8_t owner)
{
	for (uint32_t unit = 0; unit < map->count; unit++)
		if (map->owner[unit] == owner)
			map->dirty[unit] = 1;
}

/* Count the units without an owner. */
uint32_t vgpu_pf_range_free_units(const struct vgpu_range_map *map)
{
	return vgpu_pf_range_owned_units(map, VGPU_RANGE_FREE);
}

/* Count the units of an owner. */
uint32_t vgpu_pf_range_owned_units(const struct vgpu_range_map *map, uint8_t owner)
{
	uint32_t units = 0;

	for (uint32_t unit = 0; unit < map->count; unit++)
		units += map->owner[unit] == owner;
	return units;
}

/*
 * Find the next range of units of an owner. range: in: the previous range, {0, 0} to start; out:
 * the next range. Return: false if there is no further range.
 */
bool vgpu_pf_range_next(const struct vgpu_range_map *map, uint8_t owner, struct vgpu_range *range)
{
	for (uint32_t unit = range->first + range->count; unit < map->count; unit++) {
		if (map->owner[unit] != owner)
			continue;
		range->first = unit;
		range->count = range_length(map, unit, owner);
		return true;
	}
	return false;
}

/* Find the next range of dirty units of an owner, otherwise as vgpu_pf_range_next(). */
bool vgpu_pf_range_next_dirty(const struct vgpu_range_map *map, uint8_t owner,
			      struct vgpu_range *range)
{
	for (uint32_t unit = range->first + range->count; unit < map->count; unit++) {
		uint32_t end = unit;

		while (end < map->count && map->owner[end] == owner && map->dirty[end])
			end++;
		if (end == unit)
			continue;
		range->first = unit;
		range->count = end - unit;
		return true;
	}
	return false;
}
