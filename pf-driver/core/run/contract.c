// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Contracts
 *
 * Keeps the budget and the tokens of each VF's contract, and picks the reservation or gang slot
 * that is due. A contract adds terms to the VF's entries in the run table, because no repeated
 * order of entries can express reservations and caps. decide.c and busy.c ask this file which VFs
 * may run. account.c passes the service of each VF to this file.
 *
 *   reservation  a hard constant-bandwidth server (Abeni and Buttazzo 1998): the VF has a budget of
 *                engine time (budget_ns) and a deadline. When the budget is used up, the VF gets
 *                the next budget at the deadline, or up to `ahead` periods before the deadline.
 *                Each new budget moves the deadline by period_ns. A VF that wakes keeps the rest
 *                of its budget if rest / time until the deadline <= budget_ns / period_ns.
 *                Otherwise the VF gets a full budget and a deadline one period from now. An overrun
 *                makes the budget negative and so reduces the next budget.
 *   cap          a token bucket. A token is a millionth of a ns of engine time, so that nothing is
 *                rounded. The tokens for the time of a run are added only after the run is charged,
 *                because a bucket that is full during the run would lose them. The tokens for one
 *                budget of the VF's reservation are retained: runs of the VF that are not from its
 *                reservation cannot use them.
 *   priority     the class with the smallest number is served first. This file finds the VFs of a
 *                class for decide.c and preempt.c.
 *   gang slot    see gang.c; this file treats the slot as a reservation. Outside full access, the
 *                VF counts as throttled.
 *
 * If all terms are zero, this file has no effect.
 */
#include "pf-driver/core/run/internal.h"

/* a token is a millionth of a ns */
#define TOKENS_PER_NS ((int64_t)VGPU_PF_RATE_MAX_PPM)
/* a budget with less than this left is not worth a world switch */
#define REMNANT_NS ((int64_t)(10 * VGPU_NS_PER_US))

static bool has_cap(const struct vgpu_vf *vf)
{
	return vf->contract.terms.rate_ppm != 0;
}

static bool has_reservation(const struct vgpu_vf *vf)
{
	return vf->contract.terms.budget_ns != 0;
}

/*
 * true if the device's run log (account.c) does not have a run of the VF yet, so that the core does
 * not know the length of this run
 */
static bool has_unlogged_run(const struct vgpu_pf_scheduler *scheduler, uint32_t vf)
{
	if (scheduler->state == VGPU_SCHEDULER_SWITCHING && scheduler->next.vf == vf)
		return true;
	if (scheduler->run.vf == vf && !scheduler->run.is_accounted)
		return true;
	return scheduler->last.vf == vf && !scheduler->last.is_accounted;
}

/* ---- caps ---- */

/* capacity of the bucket, in tokens */
static int64_t capacity(const struct vgpu_vf_contract *contract)
{
	return (int64_t)contract->terms.burst_ns * TOKENS_PER_NS;
}

/* adds the tokens for the time until `at`, up to the capacity of the bucket */
static void fill_tokens(struct vgpu_vf_contract *contract, uint64_t at)
{
	int64_t room = capacity(contract) - contract->tokens;
	int64_t elapsed = (int64_t)(at - contract->filled_ns);

	if (elapsed <= 0)
		return;
	contract->filled_ns = at;
	if (room <= 0)
		return;
	/* elapsed * rate_ppm could overflow, so the comparison divides instead */
	contract->tokens += elapsed > room / contract->terms.rate_ppm
				    ? room
				    : elapsed * (int64_t)contract->terms.rate_ppm;
}

/* the amount of tokens, in ns, that is retained for the VF's reservation */
static int64_t retained_ns(const struct vgpu_vf *vf)
{
	return (int64_t)vf->contract.terms.budget_ns;
}

/*
 * The amount of tokens, in ns, with which a throttled VF competes again:
 *   retained + max(SLICE_MIN_NS, min(quantum, (capacity - retained) / 2))
 * With fewer tokens, the VF would get many short slices, whose world switches delay other VFs.
 * The other half of (capacity - retained) can hold the tokens that come while the VF waits.
 */
static int64_t resume_threshold_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t room = vf->contract.terms.burst_ns - (uint64_t)retained_ns(vf);
	uint64_t slice = vgpu_min_u64(vgpu_pf_run_tables_quantum(pf, vf->number), room / 2);

	return retained_ns(vf) + (int64_t)vgpu_max_u64(slice, SLICE_MIN_NS);
}

/* adds tokens, and decides whether the cap throttles the VF; returns true if this has changed */
static bool update_cap(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	bool was_throttled = contract->is_throttled;
	int64_t threshold;

	if (!has_cap(vf)) {
		contract->is_throttled = false;
		return was_throttled;
	}
	if (has_unlogged_run(&pf->scheduler, vf->number))
		return false;
	fill_tokens(contract, now);
	threshold = was_throttled ? resume_threshold_ns(pf, vf)
				  : retained_ns(vf) + (int64_t)SLICE_MIN_NS;
	contract->is_throttled = contract->tokens < threshold * TOKENS_PER_NS;
	return contract->is_throttled != was_throttled;
}

/*
 * counts the time in which a VF is throttled although it has work; is_waiting: true if the VF is
 * throttled and has work now
 */
static void record_throttled(struct vgpu_vf *vf, bool is_waiting, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;

	if (is_waiting && contract->throttled_since_ns == 0)
		contract->throttled_since_ns = now;
	if (is_waiting || contract->throttled_since_ns == 0)
		return;
	contract->throttled_ns += now - contract->throttled_since_ns;
	contract->throttled_since_ns = 0;
}

/* ---- reservations ---- */

/*
 * adds the budgets that are due; the reservation is exhausted if less than REMNANT_NS is left even
 * then
 */
static void fill_budget(struct vgpu_vf_contract *contract, uint64_t now)
{
	const struct vgpu_pf_contract *terms = &contract->terms;

	/* add no budgets for periods in which the VF slept */
	if (contract->deadline_ns + terms->period_ns < now)
		contract->deadline_ns = now;
	while (contract->budget_ns < REMNANT_NS &&
	       contract->deadline_ns <= now + terms->ahead * terms->period_ns) {
		contract->budget_ns += (int64_t)terms->budget_ns;
		contract->deadline_ns += terms->period_ns;
	}
	contract->is_exhausted = contract->budget_ns < REMNANT_NS;
}

/*
 * True if the rest of the budget <= time until the deadline * budget_ns / period_ns. One factor of
 * each product is in us, because a product of two times in ns could overflow.
 */
static bool is_budget_usable(const struct vgpu_vf_contract *contract, uint64_t now)
{
	uint64_t left_us = ((uint64_t)contract->budget_ns + VGPU_NS_PER_US - 1) / VGPU_NS_PER_US;

	if (now >= contract->deadline_ns)
		return false;
	return left_us * contract->terms.period_ns <=
	       (contract->deadline_ns - now) / VGPU_NS_PER_US * contract->terms.budget_ns;
}

/* adds due budgets; renews the budget of a VF that wakes and may not use the rest of its budget */
static void update_reservation(struct vgpu_vf *vf, bool is_awake, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	bool wakes = is_awake && !contract->is_awake;

	contract->is_awake = is_awake;
	if (contract->is_exhausted)
		fill_budget(contract, now);
	if (!wakes || contract->is_exhausted || is_budget_usable(contract, now))
		return;
	contract->budget_ns = (int64_t)contract->terms.budget_ns;
	contract->deadline_ns = now + contract->terms.period_ns;
}

/* ---- for the rest of the scheduler ---- */

/*
 * Add budgets and tokens that are due, and update gang slots. Return: true if a VF's cap began or
 * ceased to throttle the VF.
 */
bool vgpu_pf_run_contract_update(struct vgpu_pf *pf)
{
	uint32_t awake = vgpu_pf_run_busy_runnable(pf) & pf->scheduler.work.busy;
	uint64_t now = vgpu_pf_timer_now(pf);
	bool is_changed = false;
	struct vgpu_vf *vf;

	if (!pf->scheduler.tables.has_contracts)
		return false;
	vgpu_for_each_vf(pf, vf) {
		bool has_work = vgpu_has_bit(awake, vf->number);

		is_changed |= update_cap(pf, vf, now);
		record_throttled(vf, vf->contract.is_throttled && has_work, now);
		if (vgpu_pf_run_gang_has(vf))
			vgpu_pf_run_gang_update(vf, now);
		else if (has_reservation(vf))
			update_reservation(vf, has_work, now);
	}
	return is_changed;
}

/*
 * Find the VFs that are throttled. The scheduler skips the entries of a throttled VF, because the
 * VF's cap has too few tokens or the VF runs only in gang slots. Outside full access, a VF of a
 * gang counts as throttled even while its slot is open. A VF in exclusive full access is never
 * throttled, because all other VFs wait until its full access ends. Return: bit per VF.
 */
uint32_t vgpu_pf_run_contract_throttled(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;
	uint32_t mask = 0;

	if (!pf->scheduler.tables.has_contracts)
		return 0;
	vgpu_for_each_vf(pf, vf)
		if ((vf->contract.is_throttled || vgpu_pf_run_gang_is_confined(vf)) &&
		    vf->number != pf->scheduler.exclusive_vf)
			mask |= VGPU_VF_BIT(vf);
	return mask;
}

/* Find the VFs that keep their entries or slots while they have no work. Return: bit per VF. */
uint32_t vgpu_pf_run_contract_strict(struct vgpu_pf *pf)
{
	uint32_t mask = 0;
	struct vgpu_vf *vf;

	if (vgpu_pf_run_tables_active(pf)->table.flags & VGPU_PF_TABLE_STRICT)
		return UINT32_MAX;
	if (!pf->scheduler.tables.has_contracts)
		return 0;
	vgpu_for_each_vf(pf, vf)
		if (vf->contract.terms.flags & VGPU_PF_CONTRACT_STRICT ||
		    vgpu_pf_run_gang_is_confined(vf))
			mask |= VGPU_VF_BIT(vf);
	return mask;
}

/*
 * Return: true if a cap or gang slots limit the VF's service, and the VF is not in exclusive full
 * access.
 */
bool vgpu_pf_run_contract_is_limited(const struct vgpu_pf *pf, uint32_t vf)
{
	return (has_cap(&pf->vfs[vf]) || vgpu_pf_run_gang_has(&pf->vfs[vf])) &&
	       pf->scheduler.tables.has_contracts && pf->scheduler.exclusive_vf != vf;
}

/* Find the VFs of a mask that are in a higher class than priority_class. Return: bit per VF. */
uint32_t vgpu_pf_run_contract_before_priority_class(struct vgpu_pf *pf, uint32_t mask,
						    uint32_t priority_class)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->contract.terms.priority_class >= priority_class)
			mask &= ~VGPU_VF_BIT(vf);
	return mask;
}

/*
 * Find the VFs of a mask that are in the highest priority class of the mask. If any VF of the mask
 * has work, only classes with work count, so that a strict VF without work does not delay lower
 * classes. Return: bit per VF.
 */
uint32_t vgpu_pf_run_contract_first_priority_class(struct vgpu_pf *pf, uint32_t mask)
{
	uint32_t counted = mask & pf->scheduler.work.busy ? mask & pf->scheduler.work.busy : mask;
	uint32_t priority_class = VGPU_PF_PRIORITY_CLASSES;
	struct vgpu_vf *vf;

	if (!pf->scheduler.tables.has_contracts)
		return mask;
	vgpu_for_each_vf(pf, vf)
		if (vgpu_has_bit(counted, vf->number) &&
		    vf->contract.terms.priority_class < priority_class)
			priority_class = vf->contract.terms.priority_class;
	vgpu_for_each_vf(pf, vf)
		if (vf->contract.terms.priority_class != priority_class)
			mask &= ~VGPU_VF_BIT(vf);
	return mask;
}

static const struct vgpu_vf *vf_with_earliest_deadline(struct vgpu_pf *pf, uint32_t runnable)
{
	const struct vgpu_vf *best = NULL;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		const struct vgpu_vf_contract *contract = &vf->contract;

		if (!has_reservation(vf) || contract->is_exhausted || vgpu_pf_run_gang_has(vf) ||
		    !vgpu_has_bit(runnable & pf->scheduler.work.busy, vf->number))
			continue;
		if (has_cap(vf) && contract->tokens < REMNANT_NS * TOKENS_PER_NS)
			continue;
		if (!best || contract->deadline_ns < best->contract.deadline_ns)
			best = vf;
	}
	return best;
}

/*
 * Choose, among the VFs of the mask `runnable`, the VF whose gang slot is open. If no slot is open,
 * choose the VF with the earliest deadline among the VFs with a reservation, work and budget. This
 * may be a throttled VF, because tokens are retained for its reservation, but not a VF with tokens
 * for less than REMNANT_NS. Return: false if there is no such VF.
 */
bool vgpu_pf_run_contract_pick(struct vgpu_pf *pf, uint32_t runnable, struct vgpu_run *run)
{
	const struct vgpu_vf *best;

	if (!pf->scheduler.tables.has_contracts)
		return false;
	best = vgpu_pf_run_gang_open(pf, runnable);
	if (!best)
		best = vf_with_earliest_deadline(pf, runnable);
	if (!best)
		return false;
	vgpu_pf_run_pick_set(run, best->number, VGPU_RUN_CONTRACT,
			     vgpu_min_u64((uint64_t)best->contract.budget_ns,
					  VGPU_PF_QUANTUM_MAX_US * VGPU_NS_PER_US),
			     vgpu_pf_run_tables_quantum(pf, best->number));
	return true;
}

/*
 * Mark a chosen run as limited if its VF has a cap or gang slots, and is not in exclusive full
 * access. With a cap, also limit the length of the run to the VF's tokens, but not to less than
 * REMNANT_NS. Only a run from the reservation may use the retained tokens.
 */
void vgpu_pf_run_contract_limit(struct vgpu_pf *pf, struct vgpu_run *run)
{
	const struct vgpu_vf *vf = &pf->vfs[run->vf];
	int64_t tokens;

	if (!vgpu_pf_run_contract_is_limited(pf, run->vf))
		return;
	run->is_limited = true;
	if (vgpu_pf_run_gang_has(vf))
		return;
	tokens = vf->contract.tokens / TOKENS_PER_NS;
	if (run->kind != VGPU_RUN_CONTRACT)
		tokens -= retained_ns(vf);
	/* round down to us: the device counts quanta in us, and the core rounds a quantum up */
	tokens -= tokens % (int64_t)VGPU_NS_PER_US;
	if (tokens < REMNANT_NS)
		tokens = REMNANT_NS;
	run->granted_ns = vgpu_min_u64(run->granted_ns, (uint64_t)tokens);
}

/*
 * Charge a run to the budget and the tokens of a VF. run: NULL if the run is not known; ran: time
 * in the engine, in ns; reserved: the part of `ran` that was from the reservation or a gang slot,
 * in ns.
 */
void vgpu_pf_run_contract_charge(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
				 uint64_t ran, uint64_t reserved)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t now = vgpu_pf_timer_now(pf);

	if (has_reservation(vf) && !vgpu_pf_run_gang_has(vf) && reserved) {
		contract->budget_ns -= (int64_t)vgpu_min_u64(reserved, VGPU_PF_CONTRACT_MAX_NS);
		if (contract->budget_ns < REMNANT_NS)
			fill_budget(contract, now);
	}
	if (!has_cap(vf))
		return;
	if (run)
		fill_tokens(contract, run->started_ns);
	/* service before the VF had a cap uses no tokens */
	if (run && run->started_ns < contract->cap_since_ns)
		ran = vgpu_min_u64(ran, now - contract->cap_since_ns);
	contract->tokens -= (int64_t)vgpu_min_u64(ran, VGPU_PF_CONTRACT_MAX_NS) * TOKENS_PER_NS;
	fill_tokens(contract, now);
}

/* Compute how long a VF had work, but was throttled by its cap. Return: ns. */
uint64_t vgpu_pf_run_contract_throttled_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t now = vgpu_pf_timer_now(pf);

	return contract->throttled_ns +
	       (contract->throttled_since_ns ? now - contract->throttled_since_ns : 0);
}

/* when the VF's next budget or gang slot is due, or its tokens will suffice; 0: no such time */
static uint64_t next_change(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t ahead_ns = contract->terms.ahead * contract->terms.period_ns;
	uint64_t at = 0;
	int64_t missing;

	if (vgpu_pf_run_gang_has(vf))
		return vgpu_pf_run_gang_next(vf, vgpu_pf_timer_now(pf));
	if (has_reservation(vf) && contract->is_exhausted && contract->is_awake)
		/* 1, a time in the past, because 0 would mean that there is no such time */
		at = contract->deadline_ns > ahead_ns ? contract->deadline_ns - ahead_ns : 1;
	if (!contract->is_throttled || has_unlogged_run(&pf->scheduler, vf->number))
		return at;
	missing = resume_threshold_ns(pf, vf) * TOKENS_PER_NS - contract->tokens;
	/* from tokens to ns, rounded up */
	missing = (missing + contract->terms.rate_ppm - 1) / contract->terms.rate_ppm;
	if (missing < 1)
		missing = 1;
	if (at == 0 || contract->filled_ns + (uint64_t)missing < at)
		at = contract->filled_ns + (uint64_t)missing;
	return at;
}

/*
 * Set the timer for the next budget, slot or tokens. A VF without work that is not strict needs no
 * timer.
 */
void vgpu_pf_run_contract_arm(struct vgpu_pf *pf)
{
	uint32_t awake = vgpu_pf_run_busy_runnable(pf) &
			 (pf->scheduler.work.busy | vgpu_pf_run_contract_strict(pf));
	uint64_t now = vgpu_pf_timer_now(pf);
	uint64_t first = 0;
	struct vgpu_vf *vf;

	if (!pf->scheduler.tables.has_contracts)
		return;
	vgpu_for_each_vf(pf, vf) {
		uint64_t at = vgpu_has_bit(awake, vf->number) ? next_change(pf, vf) : 0;

		if (at && (first == 0 || at < first))
			first = at;
	}
	if (first == 0)
		vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_CONTRACT);
	else
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_CONTRACT, first > now ? first - now : 0);
}

/* ---- new terms ---- */

static void set_cap(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_pf_contract *terms,
		    enum vgpu_bucket bucket)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t now = vgpu_pf_timer_now(pf);
	bool had_cap = has_cap(vf);

	if (contract->terms.rate_ppm == terms->rate_ppm &&
	    contract->terms.burst_ns == terms->burst_ns)
		return;
	if (had_cap)
		fill_tokens(contract, now);
	contract->terms.rate_ppm = terms->rate_ppm;
	contract->terms.burst_ns = terms->burst_ns;
	contract->filled_ns = now;
	if (!had_cap)
		contract->cap_since_ns = now;
	if (!had_cap)
		contract->tokens = bucket == VGPU_BUCKET_FULL ? capacity(contract) : 0;
	else if (contract->tokens > capacity(contract))
		contract->tokens = capacity(contract);
}

static void set_reservation(struct vgpu_pf *pf, struct vgpu_vf *vf,
			    const struct vgpu_pf_contract *terms)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	/* the latest deadline that the new terms can lead to */
	uint64_t latest_ns = vgpu_pf_timer_now(pf) + (terms->ahead + 1ull) * terms->period_ns;

	if (contract->terms.budget_ns == terms->budget_ns &&
	    contract->terms.period_ns == terms->period_ns && contract->terms.ahead == terms->ahead)
		return;
	contract->terms.budget_ns = terms->budget_ns;
	contract->terms.period_ns = terms->period_ns;
	contract->terms.ahead = terms->ahead;
	/*
	 * keep the deadline: the new terms give the first budget at this deadline, or up to `ahead`
	 * periods before it, but after at most one of their periods. A budget at once could give
	 * one period two budgets.
	 */
	if (terms->budget_ns && contract->deadline_ns > latest_ns)
		contract->deadline_ns = latest_ns;
	contract->is_exhausted = true;
	/* a negative budget stays, because the overrun must still be deducted */
	if (contract->budget_ns > 0 || terms->budget_ns == 0)
		contract->budget_ns = 0;
}

/*
 * Activate the contracts of the table in force. A VF that already has a cap keeps its tokens, up to
 * the capacity of the new bucket. bucket: how full the bucket of a new cap is.
 */
void vgpu_pf_run_contract_activate(struct vgpu_pf *pf, enum vgpu_bucket bucket)
{
	const struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_vf *vf;

	/* the first table without contracts clears the terms; further such tables change nothing */
	if (!table->has_contracts && !pf->scheduler.tables.has_contracts)
		return;
	/* vgpu_pf_run_contract_update() below does nothing without this */
	pf->scheduler.tables.has_contracts = true;
	vgpu_for_each_vf(pf, vf) {
		const struct vgpu_pf_contract *terms = &table->table.contracts[vf->number - 1];

		set_cap(pf, vf, terms, bucket);
		set_reservation(pf, vf, terms);
		vf->contract.terms.priority_class = terms->priority_class;
		vf->contract.terms.flags = terms->flags;
		vf->contract.terms.phase_us = terms->phase_us;
		vf->contract.terms.preempt_timeout_us = terms->preempt_timeout_us;
	}
	vgpu_pf_run_contract_update(pf);
	pf->scheduler.tables.has_contracts = table->has_contracts;
	if (!table->has_contracts)
		vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_CONTRACT);
}

/* Reset the state of a VF that is being provisioned: full bucket, no budget; keep the terms. */
void vgpu_pf_run_contract_reset_vf(struct vgpu_vf *vf)
{
	struct vgpu_vf_contract *contract = &vf->contract;

	contract->tokens = capacity(contract);
	contract->budget_ns = 0;
	contract->is_exhausted = true;
	contract->is_awake = false;
	contract->is_throttled = false;
	contract->throttled_since_ns = 0;
	contract->throttled_ns = 0;
}
