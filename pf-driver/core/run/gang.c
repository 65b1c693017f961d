// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Gang slots
 *
 * A VF of a gang is in the engine in its slots and at no other time: from phase_us after each
 * multiple of period_ns of CLOCK_MONOTONIC, for budget_ns, with work or without. The clock is the
 * host's, so VFs of one period and phase on several GPUs come and go together though no GPU knows
 * of another (a time-triggered schedule: Kopetz 1991). Nobody cuts a slot, and only the VF that
 * stops the table goes before it. What a slot loses to a late switch is not made up for.
 *
 * To the rest of the executor a slot is a run of a contract, and the VF is held between slots, so
 * that its entries are passed over. Not in full access: a driver that loads waits for its rings
 * with limits of its own, and has them served as any other VF's.
 */
#include "pf-driver/core/run/internal.h"

/**
 * vgpu_pf_run_gang_has() - does this VF have gang slots?
 * @vf: the VF
 */
bool vgpu_pf_run_gang_has(const struct vgpu_vf *vf)
{
	return vf->contract.terms.flags & VGPU_PF_CONTRACT_GANG;
}

/**
 * vgpu_pf_run_gang_keeps() - is this VF kept to its slots now?
 * @vf: the VF
 */
bool vgpu_pf_run_gang_keeps(const struct vgpu_vf *vf)
{
	return vgpu_pf_run_gang_has(vf) && !vf->access.granted;
}

/* of the slot that is open, or else was open last */
static uint64_t slot_start(const struct vgpu_pf_contract *terms, uint64_t now)
{
	uint64_t into_period =
		(now + terms->period_ns - vgpu_pf_run_terms_phase_ns(terms)) % terms->period_ns;

	return now > into_period ? now - into_period : 0;
}

/**
 * vgpu_pf_run_gang_next() - when does the next slot begin?
 * @vf: of a gang
 * @now: our clock
 */
uint64_t vgpu_pf_run_gang_next(const struct vgpu_vf *vf, uint64_t now)
{
	return slot_start(&vf->contract.terms, now) + vf->contract.terms.period_ns;
}

/**
 * vgpu_pf_run_gang_update() - the budget is what is left of the slot
 * @vf: of a gang
 * @now: our clock
 */
void vgpu_pf_run_gang_update(struct vgpu_vf *vf, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t end = slot_start(&contract->terms, now) + contract->terms.budget_ns;

	contract->deadline_ns = end;
	contract->budget_ns = end > now ? (int64_t)(end - now) : 0;
	contract->is_exhausted = contract->budget_ns < (int64_t)SLICE_MIN_NS;
}

/**
 * vgpu_pf_run_gang_open() - the VF of a mask whose slot is open
 * @pf: the PF; budgets are up to date
 * @mask: bit per VF
 *
 * Return: NULL if there is none.
 */
const struct vgpu_vf *vgpu_pf_run_gang_open(struct vgpu_pf *pf, uint32_t mask)
{
	const struct vgpu_vf *vf;

	if (!pf->executor.tables.has_contracts)
		return NULL;
	vgpu_for_each_vf(pf, vf)
		if (vgpu_has_bit(mask, vf->number) && vgpu_pf_run_gang_has(vf) &&
		    !vf->contract.is_exhausted)
			return vf;
	return NULL;
}
