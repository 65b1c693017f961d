// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Finds out which VFs have work, which VFs may use the engine, and which VFs wait for the engine.
 * The core reads the busy bits (bit n - 1: VF n has work) from the device when a run has begun,
 * when VFs may have woken (vgpu_pf_run_engine_wake()), and before a decision if the last bits may
 * be out of date (decide.c).
 */
#include "pf-driver/core/run/internal.h"

/* Find the VFs that may be put into the engine, with or without work. Return: bit per VF. */
uint32_t vgpu_pf_run_busy_runnable(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;
	uint32_t mask = 0;

	vgpu_for_each_vf(pf, vf)
		if (vgpu_vf_is_runnable(vf))
			mask |= VGPU_VF_BIT(vf);
	return mask;
}

/*
 * Find the VFs that compete for the engine. A VF competes if it is runnable, is not throttled, and
 * has work or is strict. Return: bit per VF, of all priority classes.
 */
uint32_t vgpu_pf_run_busy_competing(struct vgpu_pf *pf)
{
	uint32_t busy_or_strict = pf->scheduler.work.busy | vgpu_pf_run_contract_strict(pf);

	return vgpu_pf_run_busy_runnable(pf) & busy_or_strict & ~vgpu_pf_run_contract_throttled(pf);
}

/*
 * True if the VF runs (is not parked), or a world switch moves it in or out. For such a VF,
 * engine.c and decide.c update the bit in `announced`.
 */
static bool is_running_or_switching(const struct vgpu_pf_scheduler *scheduler, uint32_t vf)
{
	if (scheduler->state == VGPU_SCHEDULER_SWITCHING && scheduler->next.vf == vf)
		return true;
	return scheduler->run.vf == vf && (scheduler->state == VGPU_SCHEDULER_RUNNING ||
					   scheduler->state == VGPU_SCHEDULER_SWITCHING);
}

/* Report WAKE and IDLE for the VFs that do not run and that gained or lost work or tokens. */
void vgpu_pf_run_busy_announce(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t throttled = vgpu_pf_run_contract_throttled(pf);
	uint32_t ready = scheduler->work.busy & ~throttled;
	uint32_t woken = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		uint32_t bit = VGPU_VF_BIT(vf);

		if (!((scheduler->work.announced ^ ready) & bit) ||
		    is_running_or_switching(scheduler, vf->number))
			continue;
		scheduler->work.announced ^= bit;
		if (ready & bit)
			woken |= bit;
		else
			vgpu_pf_event_simple(pf, VGPU_PF_EVENT_IDLE, vf->number,
					     scheduler->work.busy & throttled & bit
						     ? VGPU_PF_IDLE_THROTTLED
						     : VGPU_PF_IDLE_INACTIVE,
					     0);
	}
	if (woken)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_WAKE, (uint32_t)__builtin_ctz(woken) + 1,
				     woken, 0);
}

/*
 * Read from the device which VFs have work. Then update what depends on the work: contracts, the
 * start of each VF's wait, shares, and the WAKE and IDLE events.
 */
void vgpu_pf_run_busy_read(struct vgpu_pf *pf)
{
	uint32_t busy = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_VM_BUSY_STATUS);
	uint64_t now = vgpu_pf_timer_now(pf);
	struct vgpu_vf *vf;
	uint32_t ready;

	pf->scheduler.work.busy = busy;
	vgpu_pf_run_contract_update(pf);
	ready = busy & ~vgpu_pf_run_contract_throttled(pf);
	vgpu_for_each_vf(pf, vf) {
		bool is_waiting = (ready & VGPU_VF_BIT(vf)) && pf->scheduler.run.vf != vf->number;

		if (!is_waiting)
			vf->service.waiting_since_ns = 0;
		else if (vf->service.waiting_since_ns == 0)
			vf->service.waiting_since_ns = now;
	}
	vgpu_pf_run_share_update(pf);
	vgpu_pf_run_busy_announce(pf);
}
