// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Decides whether the VF in the engine must leave before its quantum ends. The core checks this
 * when VFs wake, when a run has begun, and when decide.c finds no VF for a preemption. The result
 * is scheduler->preemption, which decide.c follows. engine.c and tables.c also set this member.
 */
#include "pf-driver/core/run/internal.h"

/*
 * Find the VFs that wait for the engine: they compete, had work at the last read of the busy bits,
 * and are not of a lower priority class than the VF in the engine. Return: bit per VF.
 */
uint32_t vgpu_pf_run_preempt_waiting(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t waiting = vgpu_pf_run_busy_competing(pf) & scheduler->work.busy &
			   ~(1u << (scheduler->run.vf - 1));

	/* + 1: without it, the result would exclude the class of the VF in the engine */
	return vgpu_pf_run_contract_before_priority_class(
		pf, waiting, pf->vfs[scheduler->run.vf].contract.terms.priority_class + 1);
}

/*
 * Return: true if the VF that stayed in the engine without work has work again. No interrupt
 * reports this work.
 */
bool vgpu_pf_run_preempt_has_woken(const struct vgpu_pf_scheduler *scheduler)
{
	return scheduler->run.kind == VGPU_RUN_IDLE_RESIDENT && scheduler->run.vf &&
	       vgpu_has_bit(scheduler->work.busy, scheduler->run.vf);
}

/*
 * Return: true if the VF in the engine keeps its entry or slot while it has no work, because the VF
 * is strict (non-work-conserving) or in a gang slot. Always false in a run from a reservation.
 */
bool vgpu_pf_run_preempt_is_strict(struct vgpu_pf *pf)
{
	const struct vgpu_run *run = &pf->scheduler.run;

	/* in full access, vgpu_pf_run_contract_strict() leaves out a VF of a gang */
	if (run->kind == VGPU_RUN_CONTRACT)
		return vgpu_pf_run_gang_has(&pf->vfs[run->vf]);
	return vgpu_has_bit(vgpu_pf_run_contract_strict(pf), run->vf);
}

/* true if the VF in the engine must yield to a waiting VF of a higher priority class */
static bool is_outranked(struct vgpu_pf *pf, uint32_t waiting)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	return scheduler->exclusive_vf != scheduler->run.vf &&
	       vgpu_pf_run_contract_before_priority_class(
		       pf, waiting, pf->vfs[scheduler->run.vf].contract.terms.priority_class);
}

/* true if any runnable VF off the engine has an open gang slot, or work (even without tokens) */
static bool is_any_waiting(struct vgpu_pf *pf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t outside = vgpu_pf_run_busy_runnable(pf) & ~(1u << (scheduler->run.vf - 1));

	return (outside & scheduler->work.busy) || vgpu_pf_run_gang_open(pf, outside);
}

/*
 * Plans the end of an endless run (kind.c), because another VF has begun to wait: at once, or when
 * the VF in the engine has had one quantum since the start of the run.
 */
static void begin_contention(struct vgpu_pf *pf)
{
	struct vgpu_run *run = &pf->scheduler.run;
	uint64_t now = vgpu_pf_timer_now(pf);
	uint64_t end = run->started_ns + run->quantum_ns;

	run->contended_ns = now;
	if (end <= now)
		pf->scheduler.preemption = VGPU_PREEMPT_FOR_ANYONE;
	else
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE, end - now);
}

/* Decide whether the VF in the engine must leave, and set scheduler->preemption if so. */
void vgpu_pf_run_preempt_consider(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_run run;
	uint32_t waiting;

	if (scheduler->state != VGPU_SCHEDULER_RUNNING ||
	    scheduler->preemption == VGPU_PREEMPT_FOR_ANYONE)
		return;
	if (is_any_waiting(pf) && !vgpu_pf_run_preempt_is_strict(pf) &&
	    (scheduler->is_idle || !vgpu_has_bit(scheduler->work.busy, scheduler->run.vf))) {
		scheduler->preemption = VGPU_PREEMPT_FOR_ANYONE;
		return;
	}
	if (is_any_waiting(pf) && vgpu_pf_run_decide_urgent(pf, &run)) {
		scheduler->preemption = VGPU_PREEMPT_FOR_URGENT;
		return;
	}
	waiting = vgpu_pf_run_preempt_waiting(pf);
	if (waiting == 0 && vgpu_pf_run_preempt_has_woken(scheduler)) {
		scheduler->preemption = VGPU_PREEMPT_FOR_ANYONE;
		return;
	}
	if (waiting == 0 || scheduler->run.kind == VGPU_RUN_CONTRACT)
		return;
	if (is_outranked(pf, waiting)) {
		scheduler->preemption = VGPU_PREEMPT_FOR_PRIORITY_CLASS;
		return;
	}
	if (vgpu_pf_run_kind_is_endless(&scheduler->run) &&
	    scheduler->exclusive_vf != scheduler->run.vf && !scheduler->run.contended_ns)
		begin_contention(pf);
}
