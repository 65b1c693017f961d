// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Deadlines of the PF and of its VFs, all served by the one timer of the platform. A deadline is a
 * time in ns on CLOCK_MONOTONIC; 0 means not set. When a deadline has passed, top/timers.c calls
 * its handler once.
 */
#include "pf-driver/core/base/parts.h"

/* Read the platform's monotonic clock. Return: ns. */
uint64_t vgpu_pf_timer_now(struct vgpu_pf *pf)
{
	return pf->os->ops->now_ns(pf->os);
}

/* Scale a wait for a guest or the device by params.time_scale; ms: wait on silicon. Return: ns. */
uint64_t vgpu_pf_timer_scaled_ns(const struct vgpu_pf *pf, uint64_t ms)
{
	return ms * VGPU_NS_PER_MS * pf->params.time_scale;
}

/* now + delay; at least 1, because a deadline of 0 means that the timer is not set */
static uint64_t deadline(struct vgpu_pf *pf, uint64_t delay_ns)
{
	return vgpu_pf_timer_now(pf) + (delay_ns ? delay_ns : 1);
}

/* Set a deadline of the PF, in place of the previous deadline of this timer. */
void vgpu_pf_timer_set(struct vgpu_pf *pf, enum vgpu_pf_timer_id id, uint64_t delay_ns)
{
	pf->timers.at_ns[id] = deadline(pf, delay_ns);
}

/* Clear a deadline of the PF. */
void vgpu_pf_timer_clear(struct vgpu_pf *pf, enum vgpu_pf_timer_id id)
{
	pf->timers.at_ns[id] = 0;
}

/* Set a deadline of a VF, in place of the previous deadline of this timer. */
void vgpu_pf_timer_set_vf(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_timer id,
			  uint64_t delay_ns)
{
	vf->timers_ns[id] = deadline(pf, delay_ns);
}

/* Clear a deadline of a VF. */
void vgpu_pf_timer_clear_vf(struct vgpu_vf *vf, enum vgpu_vf_timer id)
{
	vf->timers_ns[id] = 0;
}

/* Clear a deadline if it has passed. Return: true if it had passed. */
bool vgpu_pf_timer_expire(uint64_t *deadline_ns, uint64_t now)
{
	if (*deadline_ns == 0 || *deadline_ns > now)
		return false;
	*deadline_ns = 0;
	return true;
}

/* the earlier of two deadlines; a deadline of 0 is not set and does not count */
static uint64_t earlier(uint64_t a, uint64_t b)
{
	if (a == 0 || b == 0)
		return a + b; /* the deadline that is set; 0 if neither is set */
	return vgpu_min_u64(a, b);
}

/*
 * Set the platform's timer to the earliest deadline, unless the timer has this deadline already. If
 * no deadline is set, disarm the timer.
 */
void vgpu_pf_timer_arm(struct vgpu_pf *pf)
{
	uint64_t first = 0;
	struct vgpu_vf *vf;

	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		first = earlier(first, pf->timers.at_ns[id]);
	vgpu_for_each_vf(pf, vf)
		for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
			first = earlier(first, vf->timers_ns[id]);
	if (first == pf->timers.armed_ns)
		return;
	pf->timers.armed_ns = first;
	pf->os->ops->timer_arm(pf->os, first);
}
