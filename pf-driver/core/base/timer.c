// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Deadlines of the PF and its VFs over the one timer of the home. A deadline is an absolute time;
 * 0 means not set. Handlers run once per setting.
 */
#include "pf-driver/core/top/parts.h"

static void (*const pf_handlers[VGPU_PF_TIMERS])(struct vgpu_pf *pf) = {
	[VGPU_PF_TIMER_SWITCH] = vgpu_pf_run_switch_poll,
	[VGPU_PF_TIMER_SLICE] = vgpu_pf_run_machine_slice_timer,
	[VGPU_PF_TIMER_BULK] = vgpu_pf_bulk_poll,
	[VGPU_PF_TIMER_WATCHDOG] = vgpu_pf_watchdog,
	[VGPU_PF_TIMER_RECOVER] = vgpu_pf_run_machine_recover,
	[VGPU_PF_TIMER_CONTRACT] = vgpu_pf_run_machine_contract_timer,
};

static void (*const vf_handlers[VGPU_VF_TIMERS])(struct vgpu_pf *pf, struct vgpu_vf *vf) = {
	[VGPU_VF_TIMER_RESET] = vgpu_pf_reset_timer,
	[VGPU_VF_TIMER_ACCESS] = vgpu_pf_full_access_timer,
	[VGPU_VF_TIMER_ANSWER] = vgpu_pf_mailbox_answer_timer,
	[VGPU_VF_TIMER_OUTBOX] = vgpu_pf_mailbox_outbox_timer,
	[VGPU_VF_TIMER_THROTTLE] = vgpu_pf_mailbox_throttle_timer,
	[VGPU_VF_TIMER_GUARD] = vgpu_pf_guard_timer,
	[VGPU_VF_TIMER_TELL] = vgpu_pf_guard_tell_timer,
};

/**
 * vgpu_pf_timer_now() - the home's monotonic clock
 * @pf: the PF
 */
uint64_t vgpu_pf_timer_now(struct vgpu_pf *pf)
{
	return pf->os->ops->now_ns(pf->os);
}

/**
 * vgpu_pf_timer_scaled_ms() - how long to wait for a guest or the device
 * @pf: the PF
 * @ms: on silicon
 *
 * Return: ns, with the PF's scale factor.
 */
uint64_t vgpu_pf_timer_scaled_ms(const struct vgpu_pf *pf, uint64_t ms)
{
	return ms * VGPU_NS_PER_MS * pf->params.time_scale;
}

static uint64_t deadline(struct vgpu_pf *pf, uint64_t delay_ns)
{
	return vgpu_pf_timer_now(pf) + (delay_ns ? delay_ns : 1);
}

/**
 * vgpu_pf_timer_set() - set a deadline of the PF
 * @pf: the PF
 * @id: which; replaces its former setting
 * @delay_ns: from now
 */
void vgpu_pf_timer_set(struct vgpu_pf *pf, enum vgpu_pf_timer_id id, uint64_t delay_ns)
{
	pf->timers_ns[id] = deadline(pf, delay_ns);
}

/**
 * vgpu_pf_timer_clear() - forget a deadline of the PF
 * @pf: the PF
 * @id: which
 */
void vgpu_pf_timer_clear(struct vgpu_pf *pf, enum vgpu_pf_timer_id id)
{
	pf->timers_ns[id] = 0;
}

/**
 * vgpu_pf_timer_set_vf() - set a deadline of a VF
 * @pf: the PF
 * @vf: whose
 * @id: which; replaces its former setting
 * @delay_ns: from now
 */
void vgpu_pf_timer_set_vf(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_timer id,
			  uint64_t delay_ns)
{
	vf->timers_ns[id] = deadline(pf, delay_ns);
}

/**
 * vgpu_pf_timer_clear_vf() - forget a deadline of a VF
 * @vf: whose
 * @id: which
 */
void vgpu_pf_timer_clear_vf(struct vgpu_vf *vf, enum vgpu_vf_timer id)
{
	vf->timers_ns[id] = 0;
}

static bool is_due(uint64_t *deadline_ns, uint64_t now)
{
	if (*deadline_ns == 0 || *deadline_ns > now)
		return false;
	*deadline_ns = 0;
	return true;
}

/**
 * vgpu_pf_timer_run() - call the handlers of all deadlines that have passed
 * @pf: the PF
 */
void vgpu_pf_timer_run(struct vgpu_pf *pf)
{
	uint64_t now = vgpu_pf_timer_now(pf);
	struct vgpu_vf *vf;

	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		if (is_due(&pf->timers_ns[id], now))
			pf_handlers[id](pf);
	vgpu_for_each_vf(pf, vf)
		for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
			if (is_due(&vf->timers_ns[id], now))
				vf_handlers[id](pf, vf);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	if (a == 0 || b == 0)
		return a + b;
	return vgpu_min_u64(a, b);
}

/**
 * vgpu_pf_timer_arm() - set the home's timer to the earliest deadline
 * @pf: the PF
 */
void vgpu_pf_timer_arm(struct vgpu_pf *pf)
{
	uint64_t first = 0;
	struct vgpu_vf *vf;

	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		first = earlier(first, pf->timers_ns[id]);
	vgpu_for_each_vf(pf, vf)
		for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
			first = earlier(first, vf->timers_ns[id]);
	if (first == pf->armed_ns)
		return;
	pf->armed_ns = first;
	pf->os->ops->timer_arm(pf->os, first);
}
