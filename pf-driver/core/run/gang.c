// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Gang slots
 *
 * A gang is a group of VFs on several GPUs that run at the same time, in slots. A VF of a gang is
 * in the engine during its slots, with or without work, unless it may not run (such as while
 * paused). Outside its slots, the VF runs only in full access. A slot begins phase_us after each
 * multiple of period_ns of CLOCK_MONOTONIC and lasts budget_ns. The slots of all GPUs follow this
 * one clock of the host. So the GPUs need not exchange messages: VFs with the same period and phase
 * run at the same time (a time-triggered schedule: Kopetz 1991). Only a VF in exclusive full access
 * preempts a slot. A slot that begins late, because of a late switch, still ends on time.
 *
 * The rest of the scheduler treats a slot as a reservation. A VF of a gang counts as throttled, so
 * that the scheduler skips the VF's entries in the run table. In full access the VF is not
 * throttled but served like any other VF, because a loading driver waits for its rings only for a
 * limited time.
 */
#include "pf-driver/core/run/internal.h"

/* Return: true if a VF has gang slots. */
bool vgpu_pf_run_gang_has(const struct vgpu_vf *vf)
{
	return vf->contract.terms.flags & VGPU_PF_CONTRACT_GANG;
}

/* Return: true if a VF runs only in gang slots: it has slots, and is not in full access. */
bool vgpu_pf_run_gang_is_confined(const struct vgpu_vf *vf)
{
	return vgpu_pf_run_gang_has(vf) && !vf->access.granted;
}

/*
 * start of the open slot; if no slot is open, of the previous slot; negative before the first slot
 * of the platform's clock
 */
static int64_t slot_start(const struct vgpu_pf_contract *terms, uint64_t now)
{
	/* + period_ns: the difference is never negative, even if now < phase */
	uint64_t into_period =
		(now + terms->period_ns - vgpu_pf_run_terms_phase_ns(terms)) % terms->period_ns;

	return (int64_t)now - (int64_t)into_period;
}

/* Compute when the next slot begins. Return: ns of the platform's clock. */
uint64_t vgpu_pf_run_gang_next(const struct vgpu_vf *vf, uint64_t now)
{
	return (uint64_t)(slot_start(&vf->contract.terms, now) +
			  (int64_t)vf->contract.terms.period_ns);
}

/* Set the VF's budget to the time that is left of its open slot; 0 if no slot is open. */
void vgpu_pf_run_gang_update(struct vgpu_vf *vf, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	int64_t end = slot_start(&contract->terms, now) + (int64_t)contract->terms.budget_ns;

	contract->deadline_ns = end > 0 ? (uint64_t)end : 0;
	contract->budget_ns = end > (int64_t)now ? end - (int64_t)now : 0;
	contract->is_exhausted = contract->budget_ns < (int64_t)SLICE_MIN_NS;
}

/*
 * Find the VF of a mask whose slot stays open for at least SLICE_MIN_NS from now. The budgets must
 * be up to date (vgpu_pf_run_gang_update()). Return: NULL if there is no such VF.
 */
const struct vgpu_vf *vgpu_pf_run_gang_open(struct vgpu_pf *pf, uint32_t mask)
{
	const struct vgpu_vf *vf;

	if (!pf->scheduler.tables.has_contracts)
		return NULL;
	vgpu_for_each_vf(pf, vf)
		if (vgpu_has_bit(mask, vf->number) && vgpu_pf_run_gang_has(vf) &&
		    !vf->contract.is_exhausted)
			return vf;
	return NULL;
}
