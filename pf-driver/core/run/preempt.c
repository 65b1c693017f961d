// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Does the VF in the engine have to leave it before its quantum ends? Asked when somebody wakes and
 * when a run has begun; the answer is executor->preemption, which decide.c follows.
 */
#include "pf-driver/core/run/internal.h"

/**
 * vgpu_pf_run_preempt_waiting() - VFs with work that wait for the one in the engine, as last read
 * @pf: the PF
 *
 * Return: bit per VF; none of later bands.
 */
uint32_t vgpu_pf_run_preempt_waiting(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t waiting = vgpu_pf_run_busy_competing(pf) & executor->work.busy &
			   ~(1u << (executor->run.vf - 1));

	return vgpu_pf_run_contract_before_band(pf, waiting,
						pf->vfs[executor->run.vf].contract.terms.band + 1);
}

/**
 * vgpu_pf_run_preempt_has_woken() - the VF in the engine rested, and has got work since
 * @executor: of the PF
 *
 * No interrupt says so.
 */
bool vgpu_pf_run_preempt_has_woken(const struct vgpu_pf_executor *executor)
{
	return executor->run.kind == VGPU_RUN_REST && executor->run.vf &&
	       vgpu_has_bit(executor->work.busy, executor->run.vf);
}

/**
 * vgpu_pf_run_preempt_is_strict() - does the VF in the engine keep its slot without work?
 * @pf: the PF
 *
 * A reservation is only for work, a gang's slot is not.
 */
bool vgpu_pf_run_preempt_is_strict(struct vgpu_pf *pf)
{
	const struct vgpu_run *run = &pf->executor.run;

	return (run->kind != VGPU_RUN_CONTRACT || vgpu_pf_run_gang_has(&pf->vfs[run->vf])) &&
	       vgpu_has_bit(vgpu_pf_run_contract_strict(pf), run->vf);
}

/* somebody of an earlier band waits for the VF in the engine, which is not on its reservation */
static bool is_outranked(struct vgpu_pf *pf, uint32_t waiting)
{
	const struct vgpu_pf_executor *executor = &pf->executor;

	return executor->exclusive_vf != executor->run.vf &&
	       vgpu_pf_run_contract_before_band(pf, waiting,
						pf->vfs[executor->run.vf].contract.terms.band);
}

/* with work, outside the engine, whatever its band or its tokens; or a gang whose slot is open */
static bool anybody_waits(struct vgpu_pf *pf)
{
	const struct vgpu_pf_executor *executor = &pf->executor;

	uint32_t others = vgpu_pf_run_busy_runnable(pf) & ~(1u << (executor->run.vf - 1));

	return (others & executor->work.busy) || vgpu_pf_run_gang_open(pf, others);
}

/* it was alone until now; it may finish a quantum that began when it did */
static void begin_contention(struct vgpu_pf *pf)
{
	struct vgpu_run *run = &pf->executor.run;
	uint64_t now = vgpu_pf_timer_now(pf);
	uint64_t end = run->started_ns + run->quantum_ns;

	run->contended_ns = now;
	if (end <= now)
		pf->executor.preemption = VGPU_PREEMPT_FOR_ANYONE;
	else
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE, end - now);
}

/**
 * vgpu_pf_run_preempt_consider() - VFs outside the engine may have work: does the one in it leave?
 * @pf: the PF
 */
void vgpu_pf_run_preempt_consider(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run run;
	uint32_t others;

	if (executor->state != VGPU_EXECUTOR_RUNNING ||
	    executor->preemption == VGPU_PREEMPT_FOR_ANYONE)
		return;
	if (anybody_waits(pf) && !vgpu_pf_run_preempt_is_strict(pf) &&
	    (executor->is_idle || !vgpu_has_bit(executor->work.busy, executor->run.vf))) {
		executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
		return;
	}
	if (anybody_waits(pf) && vgpu_pf_run_decide_urgent(pf, &run)) {
		executor->preemption = VGPU_PREEMPT_FOR_RESERVE;
		return;
	}
	others = vgpu_pf_run_preempt_waiting(pf);
	if (others == 0 && vgpu_pf_run_preempt_has_woken(executor)) {
		executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
		return;
	}
	if (others == 0 || executor->run.kind == VGPU_RUN_CONTRACT)
		return;
	if (is_outranked(pf, others)) {
		executor->preemption = VGPU_PREEMPT_FOR_BAND;
		return;
	}
	if (vgpu_pf_run_kind_is_endless(&executor->run) &&
	    executor->exclusive_vf != executor->run.vf && !executor->run.contended_ns)
		begin_contention(pf);
}
