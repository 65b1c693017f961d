// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Calls the handler of each timer whose deadline has passed (base/timer.c). */
#include "pf-driver/core/top/parts.h"

static void (*const pf_handlers[VGPU_PF_TIMERS])(struct vgpu_pf *pf) = {
	[VGPU_PF_TIMER_SWITCH] = vgpu_pf_run_switch_poll,
	[VGPU_PF_TIMER_SLICE] = vgpu_pf_run_engine_slice_timer,
	[VGPU_PF_TIMER_BULK] = vgpu_pf_bulk_poll,
	[VGPU_PF_TIMER_WATCHDOG] = vgpu_pf_watchdog,
	[VGPU_PF_TIMER_RECOVER] = vgpu_pf_run_engine_recover,
	[VGPU_PF_TIMER_DEVICE_RESET] = vgpu_pf_device_reset_poll,
	[VGPU_PF_TIMER_CONTRACT] = vgpu_pf_run_engine_wake,
};

static void (*const vf_handlers[VGPU_VF_TIMERS])(struct vgpu_pf *pf, struct vgpu_vf *vf) = {
	[VGPU_VF_TIMER_RESET] = vgpu_pf_reset_timer,
	[VGPU_VF_TIMER_ACCESS] = vgpu_pf_full_access_timer,
	[VGPU_VF_TIMER_ANSWER] = vgpu_pf_mailbox_answer_timer,
	[VGPU_VF_TIMER_OUTBOX] = vgpu_pf_mailbox_outbox_timer,
	[VGPU_VF_TIMER_THROTTLE] = vgpu_pf_mailbox_throttle_timer,
	[VGPU_VF_TIMER_GUARD] = vgpu_pf_guard_timer,
	[VGPU_VF_TIMER_NOTIFY] = vgpu_pf_notify_timer,
};

/* Call the handler of each deadline that has passed. */
void vgpu_pf_timers_run(struct vgpu_pf *pf)
{
	uint64_t now = vgpu_pf_timer_now(pf);
	struct vgpu_vf *vf;

	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		if (vgpu_pf_timer_expire(&pf->timers.at_ns[id], now))
			pf_handlers[id](pf);
	vgpu_for_each_vf(pf, vf)
		for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
			if (vgpu_pf_timer_expire(&vf->timers_ns[id], now))
				vf_handlers[id](pf, vf);
}
