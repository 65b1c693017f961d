// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Shares
 *
 * Gives each VF its share by weight, at every instant. vgpud plans the order of the run table
 * before the VFs with work are known; the shares decide where to deviate from that order. Each band
 * (priority class) has a virtual time V that passes with the service of its VFs. Each VF has a
 * virtual time R, up to which it has been served:
 *
 *   lag(VF) = (V - R) * weight        > 0: the VF is owed service; < 0: it has had too much
 *
 * The deadline of a VF is the V at which the VF is owed a slice. Let r be the longest slice. The VF
 * whose turn it is runs if afterwards its lag is >= -r, and if for every deadline D:
 *
 *   sum of lag(VFs with deadline <= D) - (D - V) * sum of weight(other VFs) <= r
 *
 * Otherwise the VF with the earliest deadline among the VFs with lag >= 0 is next (EEVDF; Stoica
 * and Abdel-Wahab, TR-95-22), which keeps the sums within r. docs/scheduling.md has the proof. No
 * weight changes in a way that would bring a sum beyond r:
 *
 *   runs out of work  in its turn: the VF's positive lag goes to the others, as if the VF had been
 *                     served. At another time: the lag goes to a pool (the estate), which is
 *                     shared out at a decision, or before a VF joins, when no VF is owed anything
 *   had too much      a VF that sleeps with a negative lag is a debtor (is_paying): its weight
 *                     counts until its share has paid for the lag
 *   gets new weight   the new weight counts as soon as the sums with it are within r
 *
 * Virtual times are unsigned, in 2^-24 ns per unit of weight, and wrap; only differences have a
 * meaning.
 */
#include "pf-driver/core/run/internal.h"

#define FRACTION_BITS 24
/* a longer run is an accident, and its VF does not pay for all of it */
#define SERVED_MAX_NS (30000ull * VGPU_NS_PER_MS)

static struct vgpu_run_band *band_of(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return &pf->executor.bands[vf->share.band];
}

/* Whether the weight of a VF counts: the VF competes, or still pays for a negative lag. */
bool vgpu_pf_run_share_counts(const struct vgpu_vf *vf)
{
	return vf->share.is_competing || vf->share.is_paying;
}

/* The sum of the weights of a band that count. */
uint64_t vgpu_pf_run_share_weights(struct vgpu_pf *pf, uint32_t band)
{
	uint64_t sum = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.band == band && vgpu_pf_run_share_counts(vf))
			sum += vf->share.weight;
	return sum;
}

/* How far a VF is ahead of its share: R - V, in virtual time; negative if the VF is behind. */
int64_t vgpu_pf_run_share_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return (int64_t)(vf->share.received - band_of(pf, vf)->now);
}

/* Ideal service of a VF minus received service, in ns; 0 if its weight does not count. */
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

/* changes the weight and keeps the lag */
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

/* sets the lag to 0, because the VF has paid */
static void become_even(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->share.received = band_of(pf, vf)->now;
	vf->share.is_paying = false;
	vf->share.weight = vf->share.wanted;
}

/* the VF that pays for a negative lag and will reach lag 0 first; NULL: none pays */
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

/* advances a band's time by service, in ns << FRACTION_BITS; debtors that reach lag 0 drop out */
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

/* the smallest R - V of the competing VFs; < 0: one is owed something; INT64_MAX: none competes */
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

/* shares out the pool while no VF is owed anything; its parts must not add to positive lags */
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
	/* share out the pool first: a VF that joins now gets no part of it */
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

/* the VF stops competing: its weight pays for a negative lag, and it forfeits a positive lag */
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
	/* a VF that runs has work */
	wake(pf, vf);
	share->received += (amount + share->rest) / share->weight;
	share->rest = (amount + share->rest) % share->weight;
	advance(pf, share->band, amount);
}

/* false for an idle-resident VF, and for a VF that its reservation serves */
static bool is_by_weight(const struct vgpu_run *run)
{
	return run->vf && vgpu_pf_run_kind(run)->is_by_weight;
}

/* charges the present run, which is not in the log yet, before a VF begins or stops to compete */
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

/* Charge a run that has ended to the share of its VF. */
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

/* the VFs that compete by weight; VFs of gangs have slots instead */
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

/* whether the run in which the VF ran out of work was served by its weight */
static bool is_its_turn(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_run *run = &pf->executor.run;

	if (!vgpu_vf_is_runnable(vf) || vf->contract.is_held)
		return false;
	return run->vf == vf->number && !run->is_accounted ? is_by_weight(run)
							   : vf->share.was_by_weight;
}

/* Let VFs that gained or lost work, or the right to use the engine, begin or stop to compete. */
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

/* Let VFs that were stopped or will leave the engine stop to compete. */
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

/* activates the slice length and weight of the table in force, if all sums stay within the bound */
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

/* Before a decision: share out the pools, and put new weights in force. */
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

/* Activate weights and bands of the table in force; lags stay, as they do not depend on tables. */
void vgpu_pf_run_share_take(struct vgpu_pf *pf)
{
	const struct vgpu_run_slots *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		uint32_t weight = table->table.weights[vf->number - 1];

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
