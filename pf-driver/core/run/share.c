// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Shares
 *
 * Keeps the service of each VF near its share by weight at every instant. vgpud plans the run table
 * before anyone knows which VFs will have work; the shares decide where to deviate from the table.
 * Each priority class has a virtual time V, which grows by service / sum of the weights that count.
 * The weight of a VF counts while the VF competes, or sleeps with a negative lag. Each VF has a
 * virtual time R up to which the VF has been served:
 *
 *   lag(VF) = (V - R) * weight        > 0: the VF has had too little service; < 0: too much
 *   deadline(VF) = R + slice / weight
 *
 * Let r be the longest slice of the class, and let S(D) be, for a deadline D of any VF:
 *
 *   S(D) = sum of lag(VFs with deadline <= D) - (D - V) * sum of weight(other VFs)
 *
 * The VF of the next entry runs if, after its slice, its lag is >= -r and every S(D) is <= r
 * (outlook.c). If the lag would be < -r, the core tries the entry after this one. If any S(D) would
 * be > r, the VF with the earliest deadline among the VFs with lag >= 0 is next (EEVDF; Stoica and
 * Abdel-Wahab, TR-95-22), which keeps every S(D) <= r. docs/scheduling.md has the proof and the
 * exceptions. Every S(D) stays <= r also when the work or the weight of a VF changes:
 *
 *   out of work, lag > 0  If the VF ran out of work in a run by weight (a run neither from a
 *                         reservation nor in a gang slot), the other VFs get the lag, as if the
 *                         VF had been served. Otherwise the lag goes to the pool of forfeited lag.
 *                         The core shares out the pool at a decision, or before a VF joins, while
 *                         the lags of all competing VFs are negative.
 *   out of work, lag < 0  The VF is marked (has_negative_lag): its weight counts until the lag is 0
 *                         again.
 *   new weight            The new weight counts as soon as every S(D) with it is <= r.
 *
 * Virtual times are unsigned, in 2^-24 ns per unit of weight, and wrap; only differences have a
 * meaning.
 */
#include "pf-driver/core/run/internal.h"

#define FRACTION_BITS 24 /* binary places of virtual times */
/* upper limit of one charge: a longer run comes from a failure, such as a stall of the host */
#define SERVED_MAX_NS (30000ull * VGPU_NS_PER_MS)

static struct vgpu_run_priority_class *priority_class_of(struct vgpu_pf *pf,
							 const struct vgpu_vf *vf)
{
	return &pf->scheduler.priority_classes[vf->share.priority_class];
}

/* Return: true if a VF's weight counts, because the VF competes or sleeps with a negative lag. */
bool vgpu_pf_run_share_counts(const struct vgpu_vf *vf)
{
	return vf->share.is_competing || vf->share.has_negative_lag;
}

/* Compute the sum of the weights that count in a priority class. */
uint64_t vgpu_pf_run_share_weights(struct vgpu_pf *pf, uint32_t priority_class)
{
	uint64_t sum = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.priority_class == priority_class && vgpu_pf_run_share_counts(vf))
			sum += vf->share.weight;
	return sum;
}

/* Compute how far a VF is ahead of its share, in virtual time: R - V. < 0: the VF is behind. */
int64_t vgpu_pf_run_share_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return (int64_t)(vf->share.received - priority_class_of(pf, vf)->now);
}

/* Compute the lag of a VF, in ns. Return: 0 if the VF's weight does not count. */
int64_t vgpu_pf_run_share_lag(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	int64_t ahead = vgpu_pf_run_share_ahead(pf, vf);
	uint64_t distance = ahead < 0 ? (uint64_t)-ahead : (uint64_t)ahead;
	uint64_t weight = vf->share.weight;
	uint64_t mask = (1ull << FRACTION_BITS) - 1;
	/* distance * weight >> FRACTION_BITS, in two parts so that the product does not overflow */
	int64_t ns = (int64_t)((distance >> FRACTION_BITS) * weight +
			       ((distance & mask) * weight >> FRACTION_BITS));

	if (!vgpu_pf_run_share_counts(vf))
		return 0;
	return ahead < 0 ? ns : -ns;
}

/* makes the weight of the table the weight in force, and keeps the lag in ns */
static void activate_weight(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_share *share = &vf->share;
	int64_t lag = vgpu_pf_run_share_lag(pf, vf);
	uint64_t distance =
		((uint64_t)(lag < 0 ? -lag : lag) << FRACTION_BITS) / share->table_weight;

	share->weight = share->table_weight;
	if (vgpu_pf_run_share_counts(vf))
		share->received = priority_class_of(pf, vf)->now +
				  (lag < 0 ? distance : (uint64_t)0 - distance);
}

/* sets the lag of a sleeping VF to 0, because the share that it did not use has offset the lag */
static void clear_lag(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->share.received = priority_class_of(pf, vf)->now;
	vf->share.has_negative_lag = false;
	vf->share.weight = vf->share.table_weight;
}

/* of the VFs that sleep with a negative lag, the VF whose lag reaches 0 first; NULL: none */
static struct vgpu_vf *first_negative(struct vgpu_pf *pf, uint32_t priority_class)
{
	struct vgpu_vf *first = NULL, *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.priority_class == priority_class && vf->share.has_negative_lag &&
		    (!first ||
		     vgpu_pf_run_share_ahead(pf, vf) < vgpu_pf_run_share_ahead(pf, first)))
			first = vf;
	return first;
}

/*
 * Advances the virtual time V of a class by a service of `amount` (in 2^-24 ns). When the lag of a
 * sleeping VF reaches 0, its weight no longer counts, so V grows faster for the rest of `amount`.
 */
static void advance(struct vgpu_pf *pf, uint32_t number, uint64_t amount)
{
	struct vgpu_run_priority_class *priority_class = &pf->scheduler.priority_classes[number];
	struct vgpu_vf *negative;
	uint64_t weights;

	amount += priority_class->remainder;
	priority_class->remainder = 0;
	while ((weights = vgpu_pf_run_share_weights(pf, number)) != 0) {
		negative = first_negative(pf, number);
		if (!negative ||
		    (uint64_t)vgpu_pf_run_share_ahead(pf, negative) > amount / weights) {
			priority_class->now += amount / weights;
			priority_class->remainder = amount % weights;
			return;
		}
		amount -= (uint64_t)vgpu_pf_run_share_ahead(pf, negative) * weights;
		priority_class->now += (uint64_t)vgpu_pf_run_share_ahead(pf, negative);
		clear_lag(pf, negative);
	}
}

/* the smallest R - V of the competing VFs; < 0: a VF has a lag > 0; INT64_MAX: no VF competes */
static int64_t min_ahead(struct vgpu_pf *pf, uint32_t priority_class)
{
	int64_t min = INT64_MAX;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.priority_class == priority_class && vf->share.is_competing &&
		    vgpu_pf_run_share_ahead(pf, vf) < min)
			min = vgpu_pf_run_share_ahead(pf, vf);
	return min;
}

/*
 * Shares out the pool of a class while the lags of all its competing VFs are negative. If no weight
 * counts, the pool is lost.
 */
static void distribute_forfeited_lag(struct vgpu_pf *pf, uint32_t number)
{
	struct vgpu_run_priority_class *priority_class = &pf->scheduler.priority_classes[number];

	while (priority_class->forfeited_lag) {
		const struct vgpu_vf *negative = first_negative(pf, number);
		uint64_t weights = vgpu_pf_run_share_weights(pf, number);
		int64_t min = min_ahead(pf, number);
		uint64_t part = priority_class->forfeited_lag;

		if (weights && min <= 0)
			return;
		/* stop where a sleeping VF reaches lag 0: then the other VFs get larger parts */
		if (negative && vgpu_pf_run_share_ahead(pf, negative) < min)
			min = vgpu_pf_run_share_ahead(pf, negative);
		if (weights && min != INT64_MAX && (uint64_t)min < part / weights)
			part = (uint64_t)min * weights;
		priority_class->forfeited_lag -= part;
		advance(pf, number, part);
	}
}

static uint32_t table_slice_us(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return (uint32_t)(vgpu_pf_run_tables_quantum(pf, vf->number) / VGPU_NS_PER_US);
}

static void begin_competing(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_share *share = &vf->share;

	if (share->is_competing || !share->table_weight)
		return;
	/* share out the pool first, because a VF that joins now gets no part of the pool */
	distribute_forfeited_lag(pf, share->priority_class);
	if (!share->has_negative_lag) {
		share->weight = share->table_weight;
		share->slice_us = table_slice_us(pf, vf);
		share->received = priority_class_of(pf, vf)->now;
		share->remainder = 0;
	}
	share->is_competing = true;
	share->has_negative_lag = false;
}

/* a VF with a positive lag forfeits the lag; the weight of a VF with a negative lag still counts */
static void stop_competing(struct vgpu_pf *pf, struct vgpu_vf *vf, bool is_served_by_weight)
{
	struct vgpu_vf_share *share = &vf->share;
	int64_t ahead = vgpu_pf_run_share_ahead(pf, vf);
	uint64_t forfeited = (uint64_t)-ahead * share->weight;

	if (!share->is_competing)
		return;
	share->is_competing = false;
	share->has_negative_lag = ahead > 0;
	if (ahead >= 0)
		return;
	if (is_served_by_weight)
		advance(pf, share->priority_class, forfeited);
	else
		priority_class_of(pf, vf)->forfeited_lag += forfeited;
}

/* charges service to the VF, and advances the virtual times of the VF and its class */
static void charge_service(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t ns)
{
	struct vgpu_vf_share *share = &vf->share;
	uint64_t amount = vgpu_min_u64(ns, SERVED_MAX_NS) << FRACTION_BITS;

	if (!share->table_weight || !amount)
		return;
	/* a VF that runs has work */
	begin_competing(pf, vf);
	share->received += (amount + share->remainder) / share->weight;
	share->remainder = (amount + share->remainder) % share->weight;
	advance(pf, share->priority_class, amount);
}

/* true if this file charges the run to the share of its VF while the run lasts (internal.h) */
static bool is_by_weight(const struct vgpu_run *run)
{
	return run->vf && vgpu_pf_run_kind(run)->is_by_weight;
}

/*
 * charges the present run up to now (in a world switch: up to the start of the switch); called
 * before VFs begin or stop competing, because V then grows faster or slower
 */
static void charge_present_run(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_run *run = &scheduler->run;
	uint64_t until = vgpu_pf_timer_now(pf);
	uint64_t ran;

	if (run->is_accounted || !is_by_weight(run))
		return;
	if (scheduler->state == VGPU_SCHEDULER_SWITCHING)
		until = scheduler->decided_ns;
	else if (scheduler->state != VGPU_SCHEDULER_RUNNING)
		return;
	ran = until > run->started_ns ? until - run->started_ns : 0;
	if (run->worked_ns)
		ran = vgpu_min_u64(ran, run->worked_ns);
	if (ran <= run->charged_ns)
		return;
	charge_service(pf, &pf->vfs[run->vf], ran - run->charged_ns);
	pf->vfs[run->vf].share.early_ns += ran - run->charged_ns;
	run->charged_ns = ran;
}

/*
 * Charge a run that has ended to the share of its VF, unless the run was from a reservation or in a
 * gang slot. If the VF has no work and is not strict, it stops competing. run: NULL if the core
 * does not know the run; ns: service, of which charge_present_run() may have charged a part
 * (early_ns) already.
 */
void vgpu_pf_run_share_charge(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
			      uint64_t ns, bool has_work)
{
	uint64_t early = vgpu_min_u64(ns, vf->share.early_ns);

	vf->share.was_by_weight = !run || run->kind != VGPU_RUN_CONTRACT;
	if (vf->share.was_by_weight) {
		vf->share.early_ns -= early;
		charge_service(pf, vf, ns - early);
	}
	if (!has_work && !vgpu_has_bit(vgpu_pf_run_contract_strict(pf), vf->number))
		stop_competing(pf, vf, vf->share.was_by_weight);
}

/* the VFs that compete by weight; a VF of a gang has slots instead */
static uint32_t competing_mask(struct vgpu_pf *pf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t mask = vgpu_pf_run_busy_competing(pf);
	uint32_t strict = vgpu_pf_run_contract_strict(pf);
	struct vgpu_vf *vf;

	if (scheduler->is_idle && scheduler->run.vf && !vgpu_has_bit(strict, scheduler->run.vf))
		mask &= ~(1u << (scheduler->run.vf - 1));
	vgpu_for_each_vf(pf, vf)
		if (vgpu_pf_run_gang_has(vf))
			mask &= ~VGPU_VF_BIT(vf);
	return mask;
}

/* true if the VF ran out of work in a run by weight; false if the VF may not run or is throttled */
static bool is_served_by_weight(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_run *run = &pf->scheduler.run;

	if (!vgpu_vf_is_runnable(vf) || vf->contract.is_throttled)
		return false;
	return run->vf == vf->number && !run->is_accounted ? is_by_weight(run)
							   : vf->share.was_by_weight;
}

/* Let VFs begin or stop competing, because their work or their right to run may have changed. */
void vgpu_pf_run_share_update(struct vgpu_pf *pf)
{
	uint32_t competing;
	struct vgpu_vf *vf;

	competing = competing_mask(pf);
	charge_present_run(pf);
	vgpu_for_each_vf(pf, vf) {
		if (vgpu_has_bit(competing, vf->number))
			begin_competing(pf, vf);
		else
			stop_competing(pf, vf, is_served_by_weight(pf, vf));
	}
}

/* Let VFs that may no longer use the engine stop competing. */
void vgpu_pf_run_share_withdraw(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		if (!vf->share.is_competing || vgpu_vf_is_runnable(vf))
			continue;
		charge_present_run(pf);
		stop_competing(pf, vf, false);
	}
}

/* ---- between two runs ---- */

/* activates a VF's slice length, then its weight, of the table; each only if every S(D) <= r */
static void activate_terms(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_share before = vf->share;

	vf->share.slice_us = table_slice_us(pf, vf);
	if (vf->share.slice_us != before.slice_us && !vgpu_pf_run_outlook_is_safe(pf, vf))
		vf->share = before;
	before = vf->share;
	if (before.table_weight == before.weight)
		return;
	activate_weight(pf, vf);
	if (!vgpu_pf_run_outlook_is_safe(pf, vf))
		vf->share = before;
}

/* Prepare a decision: share out the pools, and put new weights and slice lengths in force. */
void vgpu_pf_run_share_apply(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	for (uint32_t priority_class = 0; priority_class < VGPU_PF_PRIORITY_CLASSES;
	     priority_class++)
		distribute_forfeited_lag(pf, priority_class);
	vgpu_for_each_vf(pf, vf)
		if (vf->share.table_weight)
			activate_terms(pf, vf);
}

/* ---- tables ---- */

static void change_priority_class(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t priority_class)
{
	bool is_competing = vf->share.is_competing;

	if (vf->share.priority_class == priority_class)
		return;
	stop_competing(pf, vf, false);
	vf->share.has_negative_lag = false;
	vf->share.priority_class = priority_class;
	if (is_competing)
		begin_competing(pf, vf);
}

/*
 * Take over the priority classes and weights of the table in force. A VF that stays in its class
 * and has a weight keeps its lag. A changed weight counts when vgpu_pf_run_share_apply() puts it in
 * force.
 */
void vgpu_pf_run_share_activate(struct vgpu_pf *pf)
{
	const struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		uint32_t weight = table->table.weights[vf->number - 1];

		change_priority_class(pf, vf, vf->contract.terms.priority_class);
		if (!weight)
			stop_competing(pf, vf, false);
		if (!weight && !vf->share.has_negative_lag)
			vf->share.weight = 0;
		vf->share.table_weight = weight;
		if (!vf->share.weight)
			vf->share.weight = weight;
	}
}
