// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Shares
 *
 * Who has had how much of what its weight entitles it to, at every instant, for tables that say
 * weights. A table is an order that was planned before it was known who would have work; what is
 * kept here is the law. Each band has a virtual time that passes with the service that its VFs
 * receive, and each VF one up to which it has been served; their distance, times the weight, is the
 * VF's lag: what it is owed, or < 0, what it has had too much.
 *
 * A turn of the table is taken if nobody can come to be owed more than the longest slice for it:
 * for every deadline D (the virtual time at which a VF is owed a slice), of those whose deadlines
 * are not after D the lags in sum, less (D - now) times the weights of the others, stay within the
 * longest slice; nor may the turn put its VF further ahead than that. Else the one with the
 * earliest deadline, of those that are owed something, is next (EEVDF; Stoica and Abdel-Wahab,
 * TR-95-22), which keeps the sums within one slice. docs/scheduling.md has the proof. As there,
 * nothing ever changes a rate while somebody is owed something for it:
 *
 *   runs out of work  in its turn: the others get what it was owed, as if served; at another time
 *                     it is kept (the estate) until nobody is owed anything, at a decision or
 *                     before somebody comes
 *   had too much      its weight counts on until its share has paid (a ghost)
 *   larger weight     counts once the VF is owed nothing
 *   smaller weight    counts once it is even
 *
 * Times are unsigned, 2^-24 ns for a unit of weight, and wrap; only differences have a meaning.
 */
#include "pf-driver/core/run/internal.h"

#define FRACTION_BITS 24
/* a run longer than that is an accident, and nobody makes up for all of it */
#define SERVED_MAX_NS (30000ull * VGPU_NS_PER_MS)

static struct vgpu_run_band *band_of(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return &pf->executor.bands[vf->share.band];
}

/**
 * vgpu_pf_run_share_counts() - does its weight count? It competes, or still owes
 * @vf: the VF
 */
bool vgpu_pf_run_share_counts(const struct vgpu_vf *vf)
{
	return vf->share.is_competing || vf->share.is_paying;
}

/**
 * vgpu_pf_run_share_weights() - the weights of a band that count
 * @pf: the PF
 * @band: number
 */
uint64_t vgpu_pf_run_share_weights(struct vgpu_pf *pf, uint32_t band)
{
	uint64_t sum = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.band == band && vgpu_pf_run_share_counts(vf))
			sum += vf->share.weight;
	return sum;
}

/**
 * vgpu_pf_run_share_ahead() - how far a VF is ahead, in virtual time
 * @pf: the PF
 * @vf: the VF
 */
int64_t vgpu_pf_run_share_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return (int64_t)(vf->share.received - band_of(pf, vf)->now);
}

/**
 * vgpu_pf_run_share_lag() - what a VF is owed; < 0: what it has had too much
 * @pf: the PF
 * @vf: the VF
 */
int64_t vgpu_pf_run_share_lag(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	int64_t ahead = vgpu_pf_run_share_ahead(pf, vf);
	uint64_t distance = ahead < 0 ? (uint64_t)-ahead : (uint64_t)ahead;
	uint64_t weight = vf->share.weight;
	uint64_t mask = (1ull << FRACTION_BITS) - 1;
	int64_t ns = (int64_t)((distance >> FRACTION_BITS) * weight +
			       ((distance & mask) * weight >> FRACTION_BITS));

	if (!vgpu_pf_run_share_counts(vf))
		return 0;
	return ahead < 0 ? ns : -ns;
}

static void put_weight_in_force(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_share *share = &vf->share;
	int64_t lag = vgpu_pf_run_share_lag(pf, vf);
	uint64_t distance = ((uint64_t)(lag < 0 ? -lag : lag) << FRACTION_BITS) / share->wanted;

	share->weight = share->wanted;
	if (vgpu_pf_run_share_counts(vf))
		share->received =
			band_of(pf, vf)->now + (lag < 0 ? distance : (uint64_t)0 - distance);
}

static void become_even(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->share.received = band_of(pf, vf)->now;
	vf->share.is_paying = false;
	vf->share.weight = vf->share.wanted;
}

/* of those who pay, who will be even first; NULL: nobody pays */
static struct vgpu_vf *first_debtor(struct vgpu_pf *pf, uint32_t band)
{
	struct vgpu_vf *first = NULL, *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.band == band && vf->share.is_paying &&
		    (!first ||
		     vgpu_pf_run_share_ahead(pf, vf) < vgpu_pf_run_share_ahead(pf, first)))
			first = vf;
	return first;
}

/* spreads an amount, in ns << FRACTION_BITS, over all that count; who has paid drops out */
static void advance(struct vgpu_pf *pf, uint32_t number, uint64_t amount)
{
	struct vgpu_run_band *band = &pf->executor.bands[number];
	struct vgpu_vf *debtor;
	uint64_t weights;

	amount += band->rest;
	band->rest = 0;
	while ((weights = vgpu_pf_run_share_weights(pf, number)) != 0) {
		debtor = first_debtor(pf, number);
		if (!debtor || (uint64_t)vgpu_pf_run_share_ahead(pf, debtor) > amount / weights) {
			band->now += amount / weights;
			band->rest = amount % weights;
			return;
		}
		amount -= (uint64_t)vgpu_pf_run_share_ahead(pf, debtor) * weights;
		band->now += (uint64_t)vgpu_pf_run_share_ahead(pf, debtor);
		become_even(pf, debtor);
	}
}

/* the least that somebody with work is ahead; < 0: it is owed something; INT64_MAX: nobody is */
static int64_t least_ahead(struct vgpu_pf *pf, uint32_t band)
{
	int64_t least = INT64_MAX;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.band == band && vf->share.is_competing &&
		    vgpu_pf_run_share_ahead(pf, vf) < least)
			least = vgpu_pf_run_share_ahead(pf, vf);
	return least;
}

/* at any other time it would come on top of what somebody is owed */
static void share_estate(struct vgpu_pf *pf, uint32_t number)
{
	struct vgpu_run_band *band = &pf->executor.bands[number];

	while (band->estate) {
		const struct vgpu_vf *debtor = first_debtor(pf, number);
		uint64_t weights = vgpu_pf_run_share_weights(pf, number);
		int64_t least = least_ahead(pf, number);
		uint64_t part = band->estate;

		if (weights && least <= 0)
			return;
		/* when a debtor has paid, the others' parts are larger */
		if (debtor && vgpu_pf_run_share_ahead(pf, debtor) < least)
			least = vgpu_pf_run_share_ahead(pf, debtor);
		if (weights && least != INT64_MAX && (uint64_t)least < part / weights)
			part = (uint64_t)least * weights;
		band->estate -= part;
		advance(pf, number, part);
	}
}

static uint32_t table_slice_us(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return (uint32_t)(vgpu_pf_run_tables_quantum(pf, vf->number) / VGPU_NS_PER_US);
}

static void wake(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_share *share = &vf->share;

	if (share->is_competing || !share->wanted)
		return;
	/* who comes now has no part in it */
	share_estate(pf, share->band);
	if (!share->is_paying) {
		share->weight = share->wanted;
		share->slice_us = table_slice_us(pf, vf);
		share->received = band_of(pf, vf)->now;
		share->rest = 0;
	}
	share->is_competing = true;
	share->is_paying = false;
}

/* what it has had too much its weight pays; what it was owed is forfeited */
static void sleep(struct vgpu_pf *pf, struct vgpu_vf *vf, bool is_its_turn)
{
	struct vgpu_vf_share *share = &vf->share;
	int64_t ahead = vgpu_pf_run_share_ahead(pf, vf);
	uint64_t owed = (uint64_t)-ahead * share->weight;

	if (!share->is_competing)
		return;
	share->is_competing = false;
	share->is_paying = ahead > 0;
	if (ahead >= 0)
		return;
	if (is_its_turn)
		advance(pf, share->band, owed);
	else
		band_of(pf, vf)->estate += owed;
}

static void serve(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t ns)
{
	struct vgpu_vf_share *share = &vf->share;
	uint64_t amount = vgpu_min_u64(ns, SERVED_MAX_NS) << FRACTION_BITS;

	if (!share->wanted || !amount)
		return;
	/* running proves work */
	wake(pf, vf);
	share->received += (amount + share->rest) / share->weight;
	share->rest = (amount + share->rest) % share->weight;
	advance(pf, share->band, amount);
}

/* at rest, or on its reservation, a VF is not served by its weight */
static bool is_by_weight(const struct vgpu_run *run)
{
	return run->vf && vgpu_pf_run_kind(run)->is_by_weight;
}

/* the run in the engine is not in the log yet, but somebody begins or ceases to compete now */
static void catch_up(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run *run = &executor->run;
	uint64_t until = vgpu_pf_timer_now(pf);
	uint64_t ran;

	if (run->is_accounted || !is_by_weight(run))
		return;
	if (executor->state == VGPU_EXECUTOR_SWITCHING)
		until = executor->decided_ns;
	else if (executor->state != VGPU_EXECUTOR_RUNNING)
		return;
	ran = until > run->started_ns ? until - run->started_ns : 0;
	if (run->worked_ns)
		ran = vgpu_min_u64(ran, run->worked_ns);
	if (ran <= run->shared_ns)
		return;
	serve(pf, &pf->vfs[run->vf], ran - run->shared_ns);
	pf->vfs[run->vf].share.early_ns += ran - run->shared_ns;
	run->shared_ns = ran;
}

/**
 * vgpu_pf_run_share_log() - a run is over
 * @pf: the PF
 * @vf: whose
 * @run: what it was granted; NULL: not known
 * @ns: how long it worked
 * @has_work: more of it
 */
void vgpu_pf_run_share_log(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
			   uint64_t ns, bool has_work)
{
	uint64_t early = vgpu_min_u64(ns, vf->share.early_ns);

	vf->share.was_by_weight = !run || run->kind != VGPU_RUN_CONTRACT;
	if (vf->share.was_by_weight) {
		vf->share.early_ns -= early;
		serve(pf, vf, ns - early);
	}
	if (!has_work && !vgpu_has_bit(vgpu_pf_run_contract_strict(pf), vf->number))
		sleep(pf, vf, vf->share.was_by_weight);
}

/* a gang has its slots, and competes for nothing */
static uint32_t competing_mask(struct vgpu_pf *pf)
{
	const struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t mask = vgpu_pf_run_busy_competing(pf);
	uint32_t strict = vgpu_pf_run_contract_strict(pf);
	struct vgpu_vf *vf;

	if (executor->is_idle && executor->run.vf && !vgpu_has_bit(strict, executor->run.vf))
		mask &= ~(1u << (executor->run.vf - 1));
	vgpu_for_each_vf(pf, vf)
		if (vgpu_pf_run_gang_has(vf))
			mask &= ~VGPU_VF_BIT(vf);
	return mask;
}

/* off the engine nobody runs out of work: it did so at the end of its last run */
static bool is_its_turn(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_run *run = &pf->executor.run;

	if (!vgpu_vf_is_runnable(vf) || vf->contract.is_held)
		return false;
	return run->vf == vf->number && !run->is_accounted ? is_by_weight(run)
							   : vf->share.was_by_weight;
}

/**
 * vgpu_pf_run_share_update() - who has work, and may use the engine, may have changed
 * @pf: the PF
 */
void vgpu_pf_run_share_update(struct vgpu_pf *pf)
{
	uint32_t competing;
	struct vgpu_vf *vf;

	competing = competing_mask(pf);
	catch_up(pf);
	vgpu_for_each_vf(pf, vf) {
		if (vgpu_has_bit(competing, vf->number))
			wake(pf, vf);
		else
			sleep(pf, vf, is_its_turn(pf, vf));
	}
}

/**
 * vgpu_pf_run_share_evict() - VFs that were stopped, or are leaving, compete no longer
 * @pf: the PF
 */
void vgpu_pf_run_share_evict(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		if (!vf->share.is_competing || vgpu_vf_is_runnable(vf))
			continue;
		catch_up(pf);
		sleep(pf, vf, false);
	}
}

/* ---- between two runs ---- */

/* what the table wants of a VF is in force as soon as that brings nobody beyond the bound */
static void take_terms(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_share before = vf->share;

	vf->share.slice_us = table_slice_us(pf, vf);
	if (vf->share.slice_us != before.slice_us && !vgpu_pf_run_outlook_is_safe(pf, vf))
		vf->share = before;
	before = vf->share;
	if (before.wanted == before.weight)
		return;
	put_weight_in_force(pf, vf);
	if (!vgpu_pf_run_outlook_is_safe(pf, vf))
		vf->share = before;
}

/**
 * vgpu_pf_run_share_settle() - the engine is between two runs
 * @pf: the PF
 */
void vgpu_pf_run_share_settle(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	for (uint32_t band = 0; band < VGPU_PF_BANDS; band++)
		share_estate(pf, band);
	vgpu_for_each_vf(pf, vf)
		if (vf->share.wanted)
			take_terms(pf, vf);
}

/* ---- tables ---- */

static void change_band(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t band)
{
	bool is_competing = vf->share.is_competing;

	if (vf->share.band == band)
		return;
	sleep(pf, vf, false);
	vf->share.is_paying = false;
	vf->share.band = band;
	if (is_competing)
		wake(pf, vf);
}

/**
 * vgpu_pf_run_share_take() - a table takes over
 * @pf: the PF
 *
 * Lags stay as they are: they are the VFs', not the table's.
 */
void vgpu_pf_run_share_take(struct vgpu_pf *pf)
{
	const struct vgpu_run_slots *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		uint32_t weight = table->weights[vf->number - 1];

		change_band(pf, vf, vf->contract.terms.band);
		if (!weight)
			sleep(pf, vf, false);
		if (!weight && !vf->share.is_paying)
			vf->share.weight = 0;
		vf->share.wanted = weight;
		if (!vf->share.weight)
			vf->share.weight = weight;
	}
}
