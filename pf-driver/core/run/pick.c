// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The functions of the rows of decisions[] in decide.c, except the one for reservations, which is
 * in contract.c. The function of a row looks among the VFs in `competing` (bit per VF) for a VF
 * that fits the row, and fills in `run`. If no VF fits, it returns false, and `run` has no meaning.
 *
 * The reserve budget of a VF is the time for which early runs of the VF may preempt other VFs in
 * one cycle of the table. The reserve section of the table gives reserve budgets; a VF in full
 * access without such a budget gets a small one.
 *
 * A VF is overdue if it has waited for max_gap_us (of the table; if 0, max_gap_ms) or longer. It is
 * late if it would wait longer than its max_gap_us unless it runs now.
 */
#include "pf-driver/core/run/internal.h"

#define BOOST_NS	  VGPU_NS_PER_MS	 /* length of a starvation boost */
#define GAP_SWITCH_MIN_NS (200 * VGPU_NS_PER_US) /* shortest time assumed for a world switch */
#define GAP_SWITCH_PART	  8			 /* two switches count as at most 1/8 of a gap */
#define ACCESS_RESERVE_US 2000u			 /* reserve budget that full access gives */

/* Start a cycle of the run table: refill the reserve budgets. */
void vgpu_pf_run_pick_start_cycle(struct vgpu_pf *pf)
{
	struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_vf *vf;

	pf->scheduler.tables.cycle_started_ns = vgpu_pf_timer_now(pf);
	vgpu_for_each_vf(pf, vf) {
		uint32_t us = table->reserve_us[vf->number];
		int64_t full;

		if (us == 0 && vf->access.granted)
			us = ACCESS_RESERVE_US;
		full = (int64_t)(us * VGPU_NS_PER_US);
		/* deduct a negative budget (overrun); the rest of a positive budget is lost */
		vf->service.budget_ns =
			vf->service.budget_ns < 0 ? vf->service.budget_ns + full : full;
	}
}

/* moves the cursor of a class to the next position; after the last one, begins a new cycle */
static void advance_cursor(struct vgpu_pf *pf, uint32_t priority_class)
{
	uint32_t positions = vgpu_pf_run_tables_active(pf)->table.count + pf->device.total_vfs;

	if (++pf->scheduler.tables.cursors[priority_class] < positions)
		return;
	pf->scheduler.tables.cursors[priority_class] = 0;
	vgpu_pf_run_pick_start_cycle(pf);
}

/*
 * Gets the entry at the cursor of a priority class. After the table.count entries of the table come
 * total_vfs positions: position table.count + n - 1 is a default entry for VF n, if the table has
 * no entry for VF n. The result has vf 0 if the position has no entry of this class. Each class has
 * its own cursor, so that runs of one class do not move the cursor of another class.
 */
static struct vgpu_pf_run_entry entry_at_cursor(struct vgpu_pf *pf, uint32_t priority_class)
{
	struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);
	struct vgpu_pf_run_entry entry = {0, VGPU_PF_QUANTUM_DEFAULT_US};
	uint32_t cursor = pf->scheduler.tables.cursors[priority_class];

	if (cursor < table->table.count)
		entry = table->table.entries[cursor];
	else if (!vgpu_has_bit(table->listed, cursor - table->table.count + 1))
		entry.vf = cursor - table->table.count + 1;
	if (pf->vfs[entry.vf].contract.terms.priority_class != priority_class)
		entry.vf = 0;
	return entry;
}

/* Fill in a new run; struct vgpu_run explains granted_ns and quantum_ns. vf: 0 for no VF. */
void vgpu_pf_run_pick_set(struct vgpu_run *run, uint32_t vf, enum vgpu_run_kind kind,
			  uint64_t granted_ns, uint64_t quantum_ns)
{
	memset(run, 0, sizeof(*run));
	run->vf = vf;
	run->kind = kind;
	run->granted_ns = granted_ns;
	run->quantum_ns = quantum_ns;
}

/* Pick the VF in exclusive full access. */
bool vgpu_pf_run_pick_exclusive(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	uint32_t vf = pf->scheduler.exclusive_vf;

	if (vf == 0 || !vgpu_has_bit(competing, vf))
		return false;
	vgpu_pf_run_pick_set(run, vf, VGPU_RUN_UNCONTENDED, QUANTUM_UNCONTENDED_US * VGPU_NS_PER_US,
			     vgpu_pf_run_tables_quantum(pf, vf));
	return true;
}

/*
 * True if the VF's reserve budget is an advance on the VF's next slices: the table has the VF in
 * its reserve section and in its entries. Only for an advance, the core checks the shares of the
 * other VFs before the run.
 */
static bool is_advance(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);

	return table->reserve_us[vf->number] && vgpu_has_bit(table->listed, vf->number);
}

/* the reserve budget in ns that the VF may use now; for an advance, at most one quantum */
static int64_t reserve_left(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	int64_t budget = vf->service.budget_ns;
	int64_t room;

	if (!is_advance(pf, vf))
		return budget;
	room = (int64_t)vgpu_pf_run_tables_quantum(pf, vf->number);
	return budget < room ? budget : room;
}

/* estimated duration of a world switch: the mean plus 1/8 of it, at least GAP_SWITCH_MIN_NS */
static uint64_t gap_switch_ns(const struct vgpu_pf *pf)
{
	uint64_t mean = pf->scheduler.switches.mean_ns;

	return vgpu_max_u64(GAP_SWITCH_MIN_NS, mean + mean / 8);
}

/*
 * Computes how long a VF may still wait if a slice of slice_ns comes first, in ns; < 0: the VF is
 * late:
 *   waiting_since + max_gap - (now + slice + two switches)
 * Returns INT64_MAX if the VF does not wait, or has no max_gap_us in the table.
 */
static int64_t gap_left(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t slice_ns)
{
	uint64_t limit =
		vgpu_pf_run_tables_active(pf)->table.max_gap_us[vf->number - 1] * VGPU_NS_PER_US;
	uint64_t since = vf->service.waiting_since_ns;
	uint64_t switches;

	if (!limit || !since)
		return INT64_MAX;
	/*
	 * two switches: to the slice, and then to the VF. Together they count as at most 1/8 of
	 * the gap, so that a short gap has room left, but as at least 2 * GAP_SWITCH_MIN_NS.
	 */
	switches = vgpu_max_u64(2 * GAP_SWITCH_MIN_NS,
				vgpu_min_u64(2 * gap_switch_ns(pf), limit / GAP_SWITCH_PART));
	return (int64_t)(since + limit) - (int64_t)(vgpu_pf_timer_now(pf) + slice_ns + switches);
}

/*
 * Return: true if a VF is overdue: it has waited for at least its max_gap_us in the run table. If
 * the table has 0 for the VF, params.max_gap_ms is the limit. If both are 0, no VF is overdue.
 */
bool vgpu_pf_run_pick_is_overdue(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t limit =
		vgpu_pf_run_tables_active(pf)->table.max_gap_us[vf->number - 1] * VGPU_NS_PER_US;
	uint64_t since = vf->service.waiting_since_ns;

	if (!limit)
		limit = pf->params.max_gap_ms * VGPU_NS_PER_MS;
	return limit && since && vgpu_pf_timer_now(pf) - since >= limit;
}

/* true if any VF of the mask, except `except`, is overdue */
static bool is_any_overdue(struct vgpu_pf *pf, uint32_t mask, const struct vgpu_vf *except)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf != except && vgpu_has_bit(mask, vf->number) &&
		    vgpu_pf_run_pick_is_overdue(pf, vf))
			return true;
	return false;
}

/* sum of the budgets of all reservations: all of them may be due at once, before other runs */
static uint64_t budgets_ns(struct vgpu_pf *pf)
{
	const struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);
	uint64_t sum = 0;

	for (uint32_t i = 0; table->has_contracts && i < pf->device.total_vfs; i++)
		sum += table->table.contracts[i].budget_ns;
	return sum;
}

/*
 * Finds the late VF that must run before the run `next`; 0: none. The check assumes that `next` and
 * the budgets of all reservations come first. Then each waiting VF runs for BOOST_NS plus a switch,
 * the VF with the least time left (gap_left()) first. If any VF would then wait longer than its
 * max_gap_us, the result is the VF with the least time left.
 */
static uint32_t first_late(struct vgpu_pf *pf, uint32_t competing, const struct vgpu_run *next)
{
	struct vgpu_vf *first = NULL, *vf, *other;
	uint64_t ahead_ns = next->granted_ns + budgets_ns(pf);
	bool is_late = false;

	competing &= ~(1u << (next->vf - 1));
	vgpu_for_each_vf(pf, vf) {
		int64_t left = gap_left(pf, vf, ahead_ns), before_ns = 0;

		if (!vgpu_has_bit(competing, vf->number) || left == INT64_MAX)
			continue;
		if (!first || left < gap_left(pf, first, ahead_ns))
			first = vf;
		vgpu_for_each_vf(pf, other)
			if (other != vf && vgpu_has_bit(competing, other->number) &&
			    gap_left(pf, other, ahead_ns) <= left)
				before_ns += (int64_t)(BOOST_NS + gap_switch_ns(pf));
		is_late = is_late || left < before_ns;
	}
	return is_late ? first->number : 0;
}

/*
 * True if an early run from a reserve budget may begin now. An advance must not bring any VF too
 * far from its share or make any VF late. A run that is not an advance waits only while another VF
 * is overdue, because a driver in full access gives up if its work takes too long.
 */
static bool is_reserve_allowed(struct vgpu_pf *pf, uint32_t competing, const struct vgpu_run *run)
{
	struct vgpu_vf *vf = &pf->vfs[run->vf];

	if (!run->is_advance)
		return !is_any_overdue(pf, competing, vf);
	return vgpu_pf_run_outlook_of(pf, vf, (int64_t)run->granted_ns) == VGPU_OUTLOOK_ALLOWED &&
	       !first_late(pf, competing, run);
}

/* Pick the first VF that has work and reserve budget, and whose early run is allowed now. */
bool vgpu_pf_run_pick_reserve(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	uint64_t cycle = vgpu_max_u64(vgpu_pf_run_tables_active(pf)->cycle_ns, SLICE_MIN_NS);
	struct vgpu_vf *vf;

	/* refill by time as well, because only slices move the cursor */
	if (vgpu_pf_timer_now(pf) - pf->scheduler.tables.cycle_started_ns >= cycle)
		vgpu_pf_run_pick_start_cycle(pf);
	vgpu_for_each_vf(pf, vf) {
		int64_t budget = reserve_left(pf, vf);

		if (!vgpu_has_bit(competing & pf->scheduler.work.busy, vf->number) ||
		    budget < (int64_t)SLICE_MIN_NS)
			continue;
		vgpu_pf_run_pick_set(run, vf->number, VGPU_RUN_RESERVE, (uint64_t)budget,
				     vgpu_pf_run_tables_quantum(pf, vf->number));
		run->is_advance = is_advance(pf, vf);
		if (is_reserve_allowed(pf, competing, run))
			return true;
	}
	return false;
}

/* Boost the VF that has waited longest, if it has waited for max_gap_ms (0: never) or longer. */
bool vgpu_pf_run_pick_boost(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	uint64_t limit = pf->params.max_gap_ms * VGPU_NS_PER_MS;
	uint64_t now = vgpu_pf_timer_now(pf);
	uint64_t longest = limit;
	struct vgpu_vf *vf;

	vgpu_pf_run_pick_set(run, 0, VGPU_RUN_BOOST, 0, 0);
	vgpu_for_each_vf(pf, vf) {
		uint64_t since = vf->service.waiting_since_ns;

		if (!vgpu_has_bit(competing, vf->number) || since == 0 || now - since < longest)
			continue;
		longest = now - since;
		vgpu_pf_run_pick_set(run, vf->number, VGPU_RUN_BOOST, BOOST_NS,
				     vgpu_pf_run_tables_quantum(pf, vf->number));
	}
	return limit != 0 && run->vf != 0;
}

/*
 * Resume a cut slice. If its VF no longer competes, the rest of the slice is too short, or the rest
 * would bring a VF too far from its share or make a VF late, the rest is lost instead.
 */
bool vgpu_pf_run_pick_resumed(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	uint32_t vf = pf->scheduler.cut.vf;

	pf->scheduler.cut.vf = 0;
	if (vf == 0 || !vgpu_has_bit(competing, vf) || pf->scheduler.cut.left_ns < SLICE_MIN_NS ||
	    vgpu_pf_run_outlook_of(pf, &pf->vfs[vf], (int64_t)pf->scheduler.cut.left_ns) !=
		    VGPU_OUTLOOK_ALLOWED)
		return false;
	vgpu_pf_run_pick_set(run, vf, VGPU_RUN_SLICE, pf->scheduler.cut.left_ns,
			     vgpu_pf_run_tables_quantum(pf, vf));
	return first_late(pf, competing, run) == 0;
}

/*
 * Pick the VF that competes alone in the highest priority class with work. Return: false if more
 * than one VF of this class competes.
 */
bool vgpu_pf_run_pick_uncontended(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	/* includes the VF in the engine; `competing` does not include this VF while it runs */
	uint32_t all =
		vgpu_pf_run_contract_first_priority_class(pf, vgpu_pf_run_busy_competing(pf));
	struct vgpu_vf *vf;

	if (pf->scheduler.exclusive_vf == 0 && (all & (all - 1)))
		return false;
	if (competing & (competing - 1))
		return false;
	vgpu_for_each_vf(pf, vf) {
		if (!(competing & VGPU_VF_BIT(vf)))
			continue;
		vgpu_pf_run_pick_set(run, vf->number, VGPU_RUN_UNCONTENDED,
				     QUANTUM_UNCONTENDED_US * VGPU_NS_PER_US,
				     vgpu_pf_run_tables_quantum(pf, vf->number));
		return true;
	}
	return false;
}

/* the priority class of the competing VFs, which is the same for all of them */
static uint32_t priority_class_of(struct vgpu_pf *pf, uint32_t competing)
{
	return pf->vfs[(uint32_t)__builtin_ctz(competing) + 1].contract.terms.priority_class;
}

static void set_slice(struct vgpu_run *run, uint32_t vf, uint64_t quantum_ns)
{
	vgpu_pf_run_pick_set(run, vf, VGPU_RUN_SLICE, quantum_ns, quantum_ns);
}

/*
 * Adds the VF in the engine to `competing` if the preemption is VGPU_PREEMPT_FOR_ANYONE, because
 * the next slice may also be a slice of this VF.
 */
static uint32_t add_vf_in_engine(struct vgpu_pf *pf, uint32_t competing, uint32_t priority_class)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	const struct vgpu_vf *current = &pf->vfs[scheduler->run.vf];

	/*
	 * except a VF with a cap, whose tokens the core does not know before the run is logged, or
	 * a VF of a gang, which has slots instead of slices
	 */
	if (scheduler->state != VGPU_SCHEDULER_RUNNING || scheduler->exclusive_vf ||
	    scheduler->preemption != VGPU_PREEMPT_FOR_ANYONE || !current->share.is_competing ||
	    current->share.priority_class != priority_class ||
	    vgpu_pf_run_contract_is_limited(pf, current->number))
		return competing;
	return competing | VGPU_VF_BIT(current);
}

/*
 * Picks the next entry whose VF is in `eligible`. The cursor skips entries whose VF would be too
 * far ahead after the slice, unless the VF is far ahead already
 * (vgpu_pf_run_outlook_is_far_ahead()). If the slice would bring a VF too far behind, or no entry
 * fits, the function picks the VF with the earliest deadline in `competing` instead.
 */
static bool pick_next_slice(struct vgpu_pf *pf, uint32_t eligible, uint32_t competing,
			    uint32_t priority_class, struct vgpu_run *run)
{
	uint32_t positions = vgpu_pf_run_tables_active(pf)->table.count + pf->device.total_vfs;
	enum vgpu_outlook outlook;
	uint32_t first;

	for (uint32_t i = 0; i < positions; i++, advance_cursor(pf, priority_class)) {
		struct vgpu_pf_run_entry entry = entry_at_cursor(pf, priority_class);
		struct vgpu_vf *vf = &pf->vfs[entry.vf];
		int64_t slice = (int64_t)(entry.quantum_us * VGPU_NS_PER_US);

		if (entry.vf == 0 || !vgpu_has_bit(eligible, entry.vf))
			continue;
		outlook = vgpu_pf_run_outlook_is_far_ahead(pf, vf)
				  ? VGPU_OUTLOOK_ALLOWED
				  : vgpu_pf_run_outlook_of(pf, vf, slice);
		if (outlook == VGPU_OUTLOOK_AHEAD)
			continue;
		if (outlook == VGPU_OUTLOOK_UNSAFE)
			break;
		set_slice(run, entry.vf, (uint64_t)slice);
		return true;
	}
	first = vgpu_pf_run_outlook_first(pf, competing);
	if (first == 0)
		return false;
	set_slice(run, first, vgpu_pf_run_tables_quantum(pf, first));
	return true;
}

/*
 * Replaces the picked run, because the VF `late` would be late. The VF `late` or the VF of the
 * picked run is next, whichever has less time left. This VF gets a full slice if the shares and
 * gaps of the other VFs allow this, and a boost otherwise. A full slice is better: a boost adds a
 * switch, which could make the next VF late, too.
 */
static void set_late_run(struct vgpu_pf *pf, uint32_t competing, uint32_t late,
			 struct vgpu_run *run)
{
	uint64_t quantum_ns;

	if (gap_left(pf, &pf->vfs[run->vf], 0) < gap_left(pf, &pf->vfs[late], 0))
		late = run->vf;
	quantum_ns = vgpu_pf_run_tables_quantum(pf, late);
	set_slice(run, late, quantum_ns);
	if (vgpu_pf_run_outlook_of(pf, &pf->vfs[late], (int64_t)quantum_ns) !=
		    VGPU_OUTLOOK_ALLOWED ||
	    first_late(pf, competing, run))
		vgpu_pf_run_pick_set(run, late, VGPU_RUN_BOOST, vgpu_min_u64(BOOST_NS, quantum_ns),
				     quantum_ns);
}

/* Pick a late VF; if there is none, the next VF by entry or deadline. */
bool vgpu_pf_run_pick_share(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run)
{
	uint32_t priority_class = priority_class_of(pf, competing);
	uint32_t eligible = competing;
	uint32_t late;

	competing = add_vf_in_engine(pf, competing, priority_class);
	/* the VF of an uncontended run has had its slice: only its deadline can make it next */
	if (pf->scheduler.run.kind != VGPU_RUN_UNCONTENDED)
		eligible = competing;
	if (!pick_next_slice(pf, eligible, competing, priority_class, run))
		return false;
	late = first_late(pf, competing, run);
	if (late)
		set_late_run(pf, competing, late, run);
	else if (entry_at_cursor(pf, priority_class).vf == run->vf)
		advance_cursor(pf, priority_class);
	return true;
}
