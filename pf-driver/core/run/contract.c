// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Contracts
 *
 * What a run table says of single VFs beside their entries, and what no table that is repeated can
 * say. All of it is bookkeeping here; decide.c asks who may run, account.c tells what was used.
 *
 *   reservation  a hard constant-bandwidth server: budget_ns until a deadline, then nothing until
 *                the next budget is due. A VF that wakes keeps budget and deadline only if using
 *                them up would not exceed its bandwidth (Abeni and Buttazzo 1998). An overrun makes
 *                the budget negative and is taken off the next.
 *   cap          a token bucket in millionths of a ns, exact. Tokens are not filled while a run is
 *                not accounted: what was used is taken off first, so that nothing is lost to the
 *                brim. What the VF's own reservation may need is kept back from its entries.
 *   band         only a comparison
 *   gang slot    gang.c; here a reservation that is held between its slots
 *
 * All terms zero: nothing here has an effect.
 */
#include "pf-driver/core/run/internal.h"

#define PARTS ((int64_t)VGPU_PF_RATE_MAX_PPM)
/* of a budget: not worth a world switch */
#define REMNANT_NS ((int64_t)(10 * VGPU_NS_PER_US))

static bool has_cap(const struct vgpu_vf *vf)
{
	return vf->contract.terms.rate_ppm != 0;
}

static bool has_reservation(const struct vgpu_vf *vf)
{
	return vf->contract.terms.budget_ns != 0;
}

/* its run is not in the log yet: what it uses is not known */
static bool is_open(const struct vgpu_pf_executor *executor, uint32_t vf)
{
	if (executor->state == VGPU_EXECUTOR_SWITCHING && executor->next.vf == vf)
		return true;
	if (executor->run.vf == vf && !executor->run.is_accounted)
		return true;
	return executor->last.vf == vf && !executor->last.is_accounted;
}

/* ---- caps ---- */

static int64_t capacity(const struct vgpu_vf_contract *contract)
{
	return (int64_t)contract->terms.burst_ns * PARTS;
}

static void fill_tokens(struct vgpu_vf_contract *contract, uint64_t at)
{
	int64_t room = capacity(contract) - contract->tokens;
	int64_t elapsed = (int64_t)(at - contract->filled_ns);

	if (elapsed <= 0)
		return;
	contract->filled_ns = at;
	if (room <= 0)
		return;
	/* full long before the product could overflow */
	contract->tokens += elapsed > room / contract->terms.rate_ppm
				    ? room
				    : elapsed * (int64_t)contract->terms.rate_ppm;
}

/* tokens that only its reservation may use */
static int64_t kept_ns(const struct vgpu_vf *vf)
{
	return (int64_t)vf->contract.terms.budget_ns;
}

/*
 * With how many tokens it competes again. Short slices would cost the others world switches; a full
 * bucket would lose the tokens that come while the VF waits for its turn.
 */
static int64_t worth_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t room = vf->contract.terms.burst_ns - (uint64_t)kept_ns(vf);
	uint64_t slice = vgpu_min_u64(vgpu_pf_run_tables_quantum(pf, vf->number), room / 2);

	return kept_ns(vf) + (int64_t)vgpu_max_u64(slice, SLICE_MIN_NS);
}

static bool update_cap(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	bool was_held = contract->is_held;
	int64_t wanted;

	if (!has_cap(vf)) {
		contract->is_held = false;
		return was_held;
	}
	if (is_open(&pf->executor, vf->number))
		return false;
	fill_tokens(contract, now);
	wanted = was_held ? worth_ns(pf, vf) : kept_ns(vf) + (int64_t)SLICE_MIN_NS;
	contract->is_held = contract->tokens < wanted * PARTS;
	return contract->is_held != was_held;
}

static void note_held(struct vgpu_vf *vf, bool is_waiting, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;

	if (is_waiting && contract->held_ns == 0)
		contract->held_ns = now;
	if (is_waiting || contract->held_ns == 0)
		return;
	contract->capped_ns += now - contract->held_ns;
	contract->held_ns = 0;
}

/* ---- reservations ---- */

/* takes the next budgets as far as their time has come; else waits for it */
static void fill_budget(struct vgpu_vf_contract *contract, uint64_t now)
{
	const struct vgpu_pf_contract *terms = &contract->terms;

	/* periods that were slept through are not made up for */
	if (contract->deadline_ns + terms->period_ns < now)
		contract->deadline_ns = now;
	while (contract->budget_ns < REMNANT_NS &&
	       contract->deadline_ns <= now + terms->ahead * terms->period_ns) {
		contract->budget_ns += (int64_t)terms->budget_ns;
		contract->deadline_ns += terms->period_ns;
	}
	contract->is_exhausted = contract->budget_ns < REMNANT_NS;
}

/* using up what is left until the deadline would not exceed the bandwidth */
static bool is_usable(const struct vgpu_vf_contract *contract, uint64_t now)
{
	uint64_t left_us = ((uint64_t)contract->budget_ns + VGPU_NS_PER_US - 1) / VGPU_NS_PER_US;

	if (now >= contract->deadline_ns)
		return false;
	return left_us * contract->terms.period_ns <=
	       (contract->deadline_ns - now) / VGPU_NS_PER_US * contract->terms.budget_ns;
}

static void update_server(struct vgpu_vf *vf, bool is_awake, uint64_t now)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	bool wakes = is_awake && !contract->is_awake;

	contract->is_awake = is_awake;
	if (contract->is_exhausted)
		fill_budget(contract, now);
	if (!wakes || contract->is_exhausted || is_usable(contract, now))
		return;
	contract->budget_ns = (int64_t)contract->terms.budget_ns;
	contract->deadline_ns = now + contract->terms.period_ns;
}

/* ---- as the executor uses it ---- */

/**
 * vgpu_pf_run_contract_update() - fill budgets and buckets whose time has come
 * @pf: the PF; busy bits are as last read
 *
 * Return: true if a VF is passed over from now on, or no longer.
 */
bool vgpu_pf_run_contract_update(struct vgpu_pf *pf)
{
	uint32_t awake = vgpu_pf_run_busy_runnable(pf) & pf->executor.work.busy;
	uint64_t now = vgpu_pf_timer_now(pf);
	bool is_changed = false;
	struct vgpu_vf *vf;

	if (!pf->executor.tables.has_contracts)
		return false;
	vgpu_for_each_vf(pf, vf) {
		bool has_work = vgpu_has_bit(awake, vf->number);

		is_changed |= update_cap(pf, vf, now);
		note_held(vf, vf->contract.is_held && has_work, now);
		if (vgpu_pf_run_gang_has(vf))
			vgpu_pf_run_gang_update(vf, now);
		else if (has_reservation(vf))
			update_server(vf, has_work, now);
	}
	return is_changed;
}

/**
 * vgpu_pf_run_contract_idle() - a VF in the engine has run out of work
 * @vf: whose
 */
void vgpu_pf_run_contract_idle(struct vgpu_vf *vf)
{
	vf->contract.is_awake = false;
}

/**
 * vgpu_pf_run_contract_held() - VFs that are passed over for want of tokens or of a slot
 * @pf: the PF
 *
 * Return: bit per VF. Who stops the table is never held: all others wait for it.
 */
uint32_t vgpu_pf_run_contract_held(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;
	uint32_t mask = 0;

	if (!pf->executor.tables.has_contracts)
		return 0;
	vgpu_for_each_vf(pf, vf)
		if ((vf->contract.is_held || vgpu_pf_run_gang_keeps(vf)) &&
		    vf->number != pf->executor.exclusive_vf)
			mask |= VGPU_VF_BIT(vf);
	return mask;
}

/**
 * vgpu_pf_run_contract_strict() - VFs whose entries or slots are kept while they have no work
 * @pf: the PF
 *
 * Return: bit per VF.
 */
uint32_t vgpu_pf_run_contract_strict(struct vgpu_pf *pf)
{
	uint32_t mask = 0;
	struct vgpu_vf *vf;

	if (vgpu_pf_run_tables_active(pf)->flags & VGPU_PF_TABLE_STRICT)
		return UINT32_MAX;
	if (!pf->executor.tables.has_contracts)
		return 0;
	vgpu_for_each_vf(pf, vf)
		if (vf->contract.terms.flags & VGPU_PF_CONTRACT_STRICT ||
		    vgpu_pf_run_gang_keeps(vf))
			mask |= VGPU_VF_BIT(vf);
	return mask;
}

/**
 * vgpu_pf_run_contract_has_cap() - is the service of this VF bounded?
 * @pf: the PF
 * @vf: VF number
 */
bool vgpu_pf_run_contract_has_cap(const struct vgpu_pf *pf, uint32_t vf)
{
	return (has_cap(&pf->vfs[vf]) || vgpu_pf_run_gang_has(&pf->vfs[vf])) &&
	       pf->executor.tables.has_contracts && pf->executor.exclusive_vf != vf;
}

/**
 * vgpu_pf_run_contract_before_band() - those of a mask that are served before a band
 * @pf: the PF
 * @mask: bit per VF
 * @band: of the contract
 */
uint32_t vgpu_pf_run_contract_before_band(struct vgpu_pf *pf, uint32_t mask, uint32_t band)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->contract.terms.band >= band)
			mask &= ~VGPU_VF_BIT(vf);
	return mask;
}

/**
 * vgpu_pf_run_contract_first_band() - those of a mask that are served first
 * @pf: the PF
 * @mask: bit per VF
 *
 * A VF that only keeps its slots without work holds up no other band.
 */
uint32_t vgpu_pf_run_contract_first_band(struct vgpu_pf *pf, uint32_t mask)
{
	uint32_t counted = mask & pf->executor.work.busy ? mask & pf->executor.work.busy : mask;
	uint32_t band = VGPU_PF_BANDS;
	struct vgpu_vf *vf;

	if (!pf->executor.tables.has_contracts)
		return mask;
	vgpu_for_each_vf(pf, vf)
		if (vgpu_has_bit(counted, vf->number) && vf->contract.terms.band < band)
			band = vf->contract.terms.band;
	vgpu_for_each_vf(pf, vf)
		if (vf->contract.terms.band != band)
			mask &= ~VGPU_VF_BIT(vf);
	return mask;
}

static const struct vgpu_vf *earliest_deadline(struct vgpu_pf *pf, uint32_t competing)
{
	const struct vgpu_vf *best = NULL;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		const struct vgpu_vf_contract *contract = &vf->contract;

		if (!has_reservation(vf) || contract->is_exhausted || vgpu_pf_run_gang_has(vf) ||
		    !vgpu_has_bit(competing & pf->executor.work.busy, vf->number))
			continue;
		if (has_cap(vf) && contract->tokens < REMNANT_NS * PARTS)
			continue;
		if (!best || contract->deadline_ns < best->contract.deadline_ns)
			best = vf;
	}
	return best;
}

/**
 * vgpu_pf_run_contract_pick() - the gang whose slot is open; else the reservation with work, budget
 * and the earliest deadline
 * @pf: the PF
 * @competing: bit per VF, held ones too
 * @run: filled in
 *
 * Return: false if there is none.
 */
bool vgpu_pf_run_contract_pick(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	const struct vgpu_vf *best;

	if (!pf->executor.tables.has_contracts)
		return false;
	best = vgpu_pf_run_gang_open(pf, competing);
	if (!best)
		best = earliest_deadline(pf, competing);
	if (!best)
		return false;
	vgpu_pf_run_pick_set(run, best->number, VGPU_RUN_CONTRACT,
			     vgpu_min_u64((uint64_t)best->contract.budget_ns,
					  VGPU_PF_QUANTUM_MAX_US * VGPU_NS_PER_US),
			     vgpu_pf_run_tables_quantum(pf, best->number));
	return true;
}

/**
 * vgpu_pf_run_contract_limit() - no run is longer than the tokens there are
 * @pf: the PF
 * @run: about to begin
 */
void vgpu_pf_run_contract_limit(struct vgpu_pf *pf, struct vgpu_run *run)
{
	const struct vgpu_vf *vf = &pf->vfs[run->vf];
	int64_t tokens;

	if (!vgpu_pf_run_contract_has_cap(pf, run->vf))
		return;
	run->is_capped = true;
	if (vgpu_pf_run_gang_has(vf))
		return;
	tokens = vf->contract.tokens / PARTS;
	if (run->kind != VGPU_RUN_CONTRACT)
		tokens -= kept_ns(vf);
	/* the device counts microseconds, rounded up */
	tokens -= tokens % (int64_t)VGPU_NS_PER_US;
	if (tokens < REMNANT_NS)
		tokens = REMNANT_NS;
	run->granted_ns = vgpu_min_u64(run->granted_ns, (uint64_t)tokens);
}

/**
 * vgpu_pf_run_contract_charge() - a VF has received service
 * @pf: the PF
 * @vf: whose
 * @run: the run this was; NULL: not one of ours
 * @ran: ns
 * @reserved: part of it that was promised by the reservation
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
	/* what was received before there was a cap is not its business */
	if (run && run->started_ns < contract->capped_since_ns)
		ran = vgpu_min_u64(ran, now - contract->capped_since_ns);
	contract->tokens -= (int64_t)vgpu_min_u64(ran, VGPU_PF_CONTRACT_MAX_NS) * PARTS;
	fill_tokens(contract, now);
}

/**
 * vgpu_pf_run_contract_capped_ns() - how long a VF had work and was passed over for want of tokens
 * @pf: the PF
 * @vf: whose
 */
uint64_t vgpu_pf_run_contract_capped_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t now = vgpu_pf_timer_now(pf);

	return contract->capped_ns + (contract->held_ns ? now - contract->held_ns : 0);
}

/* when something changes by itself for this VF; 0: never */
static uint64_t next_change(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t ahead_ns = contract->terms.ahead * contract->terms.period_ns;
	uint64_t at = 0;
	int64_t missing;

	if (vgpu_pf_run_gang_has(vf))
		return vgpu_pf_run_gang_next(vf, vgpu_pf_timer_now(pf));
	if (has_reservation(vf) && contract->is_exhausted && contract->is_awake)
		at = contract->deadline_ns > ahead_ns ? contract->deadline_ns - ahead_ns : 1;
	if (!contract->is_held || is_open(&pf->executor, vf->number))
		return at;
	missing = worth_ns(pf, vf) * PARTS - contract->tokens;
	missing = (missing + contract->terms.rate_ppm - 1) / contract->terms.rate_ppm;
	if (missing < 1)
		missing = 1;
	if (at == 0 || contract->filled_ns + (uint64_t)missing < at)
		at = contract->filled_ns + (uint64_t)missing;
	return at;
}

/**
 * vgpu_pf_run_contract_arm() - be called when the next budget or bucket is due
 * @pf: the PF
 *
 * Only for VFs with work: an idle engine is not polled.
 */
void vgpu_pf_run_contract_arm(struct vgpu_pf *pf)
{
	uint32_t awake = vgpu_pf_run_busy_runnable(pf) &
			 (pf->executor.work.busy | vgpu_pf_run_contract_strict(pf));
	uint64_t now = vgpu_pf_timer_now(pf);
	uint64_t first = 0;
	struct vgpu_vf *vf;

	if (!pf->executor.tables.has_contracts)
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

static void take_cap(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_pf_contract *terms,
		     enum vgpu_bucket bucket)
{
	struct vgpu_vf_contract *contract = &vf->contract;
	uint64_t now = vgpu_pf_timer_now(pf);
	bool was_on = has_cap(vf);

	if (contract->terms.rate_ppm == terms->rate_ppm &&
	    contract->terms.burst_ns == terms->burst_ns)
		return;
	if (was_on)
		fill_tokens(contract, now);
	contract->terms.rate_ppm = terms->rate_ppm;
	contract->terms.burst_ns = terms->burst_ns;
	contract->filled_ns = now;
	if (!was_on)
		contract->capped_since_ns = now;
	if (!was_on)
		contract->tokens = bucket == VGPU_BUCKET_FULL ? capacity(contract) : 0;
	else if (contract->tokens > capacity(contract))
		contract->tokens = capacity(contract);
}

static void take_reservation(struct vgpu_vf *vf, const struct vgpu_pf_contract *terms)
{
	struct vgpu_vf_contract *contract = &vf->contract;

	if (contract->terms.budget_ns == terms->budget_ns &&
	    contract->terms.period_ns == terms->period_ns && contract->terms.ahead == terms->ahead)
		return;
	contract->terms.budget_ns = terms->budget_ns;
	contract->terms.period_ns = terms->period_ns;
	contract->terms.ahead = terms->ahead;
	/* the period under way is waited for, so that none holds two budgets */
	contract->is_exhausted = true;
	if (contract->budget_ns > 0 || terms->budget_ns == 0)
		contract->budget_ns = 0;
}

/**
 * vgpu_pf_run_contract_take() - the contracts of the table in force apply from now on
 * @pf: the PF
 * @bucket: of a cap that was not there before; what is in the others stays
 */
void vgpu_pf_run_contract_take(struct vgpu_pf *pf, enum vgpu_bucket bucket)
{
	const struct vgpu_run_slots *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_vf *vf;

	/* a contract that ends is taken off before nobody looks any more */
	if (!table->has_contracts && !pf->executor.tables.has_contracts)
		return;
	pf->executor.tables.has_contracts = true;
	vgpu_for_each_vf(pf, vf) {
		const struct vgpu_pf_contract *terms = &table->contracts[vf->number - 1];

		take_cap(pf, vf, terms, bucket);
		take_reservation(vf, terms);
		vf->contract.terms.band = terms->band;
		vf->contract.terms.flags = terms->flags;
		vf->contract.terms.phase_us = terms->phase_us;
		vf->contract.terms.preempt_timeout_us = terms->preempt_timeout_us;
	}
	vgpu_pf_run_contract_update(pf);
	pf->executor.tables.has_contracts = table->has_contracts;
	if (!table->has_contracts)
		vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_CONTRACT);
}

/**
 * vgpu_pf_run_contract_reset_vf() - a VF is provisioned: it has used nothing yet
 * @vf: whose
 */
void vgpu_pf_run_contract_reset_vf(struct vgpu_vf *vf)
{
	struct vgpu_vf_contract *contract = &vf->contract;

	contract->tokens = capacity(contract);
	contract->budget_ns = 0;
	contract->is_exhausted = true;
	contract->is_awake = false;
	contract->is_held = false;
	contract->held_ns = 0;
	contract->capped_ns = 0;
}
