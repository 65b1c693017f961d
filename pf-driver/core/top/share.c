// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Divides a whole into parts by weights, floors and caps:
 * part = max(floor, min(cap, level * weight)). Bisection finds the level, common to all parts, at
 * which the parts add up to total_of(). linux/plan.c divides a cycle of the run table in this way.
 */
#include "pf-driver/core/pf.h"

/* the sum that the parts must have: max(sum of floors, min(sum of caps, whole)) */
static uint64_t total_of(const struct vgpu_share *shares, uint32_t count)
{
	uint64_t min = 0, max = 0;

	for (uint32_t i = 0; i < count; i++) {
		min += shares[i].min_ppm;
		max += vgpu_max_u64(shares[i].max_ppm, shares[i].min_ppm);
	}
	return vgpu_max_u64(min, vgpu_min_u64(max, VGPU_SHARE_FULL_PPM));
}

/* the part of one share in ppm, at the level VGPU_SHARE_FULL_PPM * 2^shift / divisor */
static uint32_t part_of(const struct vgpu_share *share, uint32_t shift, uint64_t divisor)
{
	uint64_t unclamped = (share->weight * VGPU_SHARE_FULL_PPM << shift) / divisor;

	return (uint32_t)vgpu_max_u64(share->min_ppm, vgpu_min_u64(share->max_ppm, unclamped));
}

static uint64_t sum_at(const struct vgpu_share *shares, uint32_t count, uint32_t shift,
		       uint64_t divisor)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += part_of(&shares[i], shift, divisor);
	return sum;
}

void vgpu_pf_share_divide(struct vgpu_share *shares, uint32_t count)
{
	uint64_t total = total_of(shares, count);
	/* divisors for part_of(): the parts fit at high; they do not fit at low, unless low is 0 */
	uint64_t heaviest = 1, low = 0, high = UINT64_MAX;
	uint32_t shift;

	for (uint32_t i = 0; i < count; i++)
		heaviest = vgpu_max_u64(heaviest, shares[i].weight);
	/* the largest shift with which part_of() does not overflow, for the best precision */
	shift = (uint32_t)__builtin_clzll(heaviest * VGPU_SHARE_FULL_PPM);
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (sum_at(shares, count, shift, middle) > total)
			low = middle;
		else
			high = middle;
	}
	for (uint32_t i = 0; i < count; i++)
		shares[i].ppm = part_of(&shares[i], shift, high);
}
