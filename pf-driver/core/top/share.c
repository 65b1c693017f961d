// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Divides a whole in proportion to weights, between floors and caps, for homes that plan run tables
 * themselves. A part that would be below its floor or above its cap gets just that, and the others
 * divide what is left. The sum of the violations decides whether floors or caps are fixed first (as
 * browsers lay out flexible boxes), so that the order of the parts does not matter.
 */
#include "pf-driver/core/pf.h"

/* of a part: FIXED ones do not change any more */
enum share_state {
	SHARE_FREE = 0,
	SHARE_LOW,  /* below its floor, in this round */
	SHARE_HIGH, /* above its cap, in this round */
	SHARE_FIXED,
};

static uint32_t clamp_ppm(uint64_t value, uint32_t least, uint32_t most)
{
	if (value < least)
		return least;
	return value > most ? most : (uint32_t)value;
}

/* the floors may exceed the whole, and the caps may be less */
static uint64_t total_of(const struct vgpu_share *shares, uint32_t count)
{
	uint64_t least = 0, most = 0;

	for (uint32_t i = 0; i < count; i++) {
		least += shares[i].least_ppm;
		most += vgpu_max_u64(shares[i].most_ppm, shares[i].least_ppm);
	}
	return vgpu_max_u64(least, vgpu_min_u64(most, VGPU_SHARE_WHOLE_PPM));
}

/* divides `left` among the parts that are not fixed, within bounds; returns their sum - `left` */
static int64_t divide(struct vgpu_share *shares, uint8_t *states, uint32_t count, uint64_t left)
{
	uint64_t weights = 0;
	int64_t excess = 0;

	for (uint32_t i = 0; i < count; i++)
		weights += states[i] == SHARE_FIXED ? 0 : shares[i].weight;
	for (uint32_t i = 0; i < count; i++) {
		struct vgpu_share *share = &shares[i];
		uint64_t wanted = weights ? left * share->weight / weights : 0;

		if (states[i] == SHARE_FIXED)
			continue;
		share->ppm = clamp_ppm(wanted, share->least_ppm,
				       (uint32_t)vgpu_max_u64(share->most_ppm, share->least_ppm));
		states[i] = share->ppm > wanted	  ? SHARE_LOW
			    : share->ppm < wanted ? SHARE_HIGH
						  : SHARE_FREE;
		excess += (int64_t)share->ppm - (int64_t)wanted;
	}
	return excess;
}

/* fixes the parts at the bounds that count. Return: what is left for the others */
static uint64_t fix(const struct vgpu_share *shares, uint8_t *states, uint32_t count,
		    int64_t excess, uint64_t left)
{
	for (uint32_t i = 0; i < count; i++) {
		bool is_low = states[i] == SHARE_LOW && excess >= 0;
		bool is_high = states[i] == SHARE_HIGH && excess <= 0;

		if (!is_low && !is_high)
			continue;
		states[i] = SHARE_FIXED;
		left -= vgpu_min_u64(left, shares[i].ppm);
	}
	return left;
}

static bool is_any_bound(const uint8_t *states, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (states[i] == SHARE_LOW || states[i] == SHARE_HIGH)
			return true;
	return false;
}

/**
 * vgpu_pf_share_divide() - divide a whole by weights, floors and caps
 * @shares: weight (at most VGPU_SHARE_WEIGHT_MAX), least_ppm and most_ppm are set; ppm is filled in
 * @count: at most VGPU_PF_MAX_VFS
 *
 * The sum of the parts is the whole, but for rounding, unless the caps are less or the floors more
 * in sum. A floor above the part's own cap counts.
 */
void vgpu_pf_share_divide(struct vgpu_share *shares, uint32_t count)
{
	uint8_t states[VGPU_PF_MAX_VFS] = {SHARE_FREE};
	uint64_t left = total_of(shares, count);

	/* each round fixes at least one part */
	for (uint32_t round = 0; round <= count; round++) {
		int64_t excess = divide(shares, states, count, left);

		if (!is_any_bound(states, count))
			return;
		left = fix(shares, states, count, excess, left);
	}
}
