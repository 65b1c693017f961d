// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: The decision
 *
 * Chooses the VF that runs next. The core tries the rows of decisions[] in order, and the first row
 * that finds a VF decides; a preemption may admit only some of the rows or VFs. The device ends
 * quanta by itself (VGPU_VF0_QUANTUM_US). A VF gets long quanta in exclusive full access, or while
 * no other VF of its priority class or a higher one competes (busy.c). In the second case, a long
 * quantum ends early when such a VF wakes (preempt.c). If no row finds a VF, keep_or_unload()
 * decides about the VF in the engine, which usually stays there without a time limit. If the
 * interrupt that reports new work of a VF is lost, the watchdog (top/pf.c) finds the work after at
 * most about a second.
 */
#include "pf-driver/core/run/internal.h"
#include "pf-driver/hw/regs.h"

static void activate_pending_table(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	if (!scheduler->tables.is_pending)
		return;
	/* the new table starts at its first entry; the lag of a VF makes up for its cut slice */
	scheduler->cut.vf = 0;
	scheduler->tables.active = !scheduler->tables.active;
	scheduler->tables.is_pending = false;
	pf->table_generation = vgpu_pf_run_tables_active(pf)->table.generation;
	memset(scheduler->tables.cursors, 0, sizeof(scheduler->tables.cursors));
	vgpu_pf_run_contract_activate(pf, VGPU_BUCKET_FULL);
	vgpu_pf_run_share_activate(pf);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_TABLE, 0,
			     vgpu_pf_run_tables_active(pf)->table.generation, 0);
	vgpu_pf_run_pick_start_cycle(pf);
}

/* ---- the order ---- */

/*
 * The VFs that a decision may choose: if a VF is in exclusive full access, only this VF; otherwise
 * all VFs.
 */
static uint32_t admitted_mask(struct vgpu_pf *pf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t mask = UINT32_MAX;

	if (scheduler->exclusive_vf)
		mask = 1u << (scheduler->exclusive_vf - 1);
	/* exclude a VF that runs: the decision is whether another VF replaces this VF */
	if (scheduler->state == VGPU_SCHEDULER_RUNNING)
		mask &= ~(1u << (scheduler->run.vf - 1));
	return mask;
}

enum decision {
	DECISION_EXCLUSIVE = 0,
	DECISION_RESERVATION,
	DECISION_RESERVE,
	DECISION_BOOST,
	DECISION_RESUMED,
	DECISION_UNCONTENDED,
	DECISION_SHARE,
};

/* the VFs that a row may choose */
enum decision_mask {
	MASK_COMPETING = 0,	   /* the VFs of admitted_mask() that compete (busy.c) */
	MASK_RUNNABLE,		   /* the VFs of admitted_mask() that are runnable */
	MASK_FIRST_PRIORITY_CLASS, /* the VFs of MASK_COMPETING in the highest class with work */
};

struct decision_row {
	const char *name;
	enum decision_mask mask;
	bool (*pick)(struct vgpu_pf *pf, uint32_t mask, struct vgpu_run *run);
};

static const struct decision_row decisions[] = {
	/* the VF in exclusive full access */
	[DECISION_EXCLUSIVE] = {"exclusive full access", MASK_COMPETING,
				vgpu_pf_run_pick_exclusive},
	/* an open gang slot, or else the earliest deadline among VFs with work and budget */
	[DECISION_RESERVATION] = {"reservation", MASK_RUNNABLE, vgpu_pf_run_contract_pick},
	/*
	 * a VF with work and reserve budget (pick.c). If the run is an advance on the VF's slices,
	 * it must fit the shares and gaps of the other VFs; otherwise it waits only while another
	 * VF is overdue.
	 */
	[DECISION_RESERVE] = {"reserve section", MASK_FIRST_PRIORITY_CLASS,
			      vgpu_pf_run_pick_reserve},
	/* a short run, charged to the share, for a VF that waited with work for max_gap_ms */
	[DECISION_BOOST] = {"waited too long", MASK_FIRST_PRIORITY_CLASS, vgpu_pf_run_pick_boost},
	/* the VF whose slice an urgent run or a higher priority class cut */
	[DECISION_RESUMED] = {"rest of a cut slice", MASK_FIRST_PRIORITY_CLASS,
			      vgpu_pf_run_pick_resumed},
	/* the only competing VF of the highest class with work */
	[DECISION_UNCONTENDED] = {"alone", MASK_FIRST_PRIORITY_CLASS, vgpu_pf_run_pick_uncontended},
	/*
	 * the next entry whose VF competes and would not be too far ahead of its share after the
	 * slice. If the slice would bring a VF too far behind, or no entry fits, the VF with the
	 * earliest deadline instead. If any VF would wait longer than its max_gap_us, the VF with
	 * the least time left instead. VFs without an entry come after the last entry.
	 */
	[DECISION_SHARE] = {"slice or share", MASK_FIRST_PRIORITY_CLASS, vgpu_pf_run_pick_share},
};

/* Get the name of a decision (vgpu_run.decision). Return: "none" if no row has this number. */
const char *vgpu_pf_run_decide_name(uint32_t decision)
{
	if (decision == 0 || decision > VGPU_COUNT_OF(decisions))
		return "none";
	return decisions[decision - 1].name;
}

/* computes the VFs of each enum decision_mask */
static void fill_masks(struct vgpu_pf *pf, uint32_t masks[MASK_FIRST_PRIORITY_CLASS + 1])
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t competing = vgpu_pf_run_busy_competing(pf) & admitted_mask(pf);

	if (scheduler->preemption == VGPU_PREEMPT_FOR_PRIORITY_CLASS)
		competing = vgpu_pf_run_contract_before_priority_class(
			pf, competing, pf->vfs[scheduler->run.vf].contract.terms.priority_class);
	masks[MASK_COMPETING] = competing;
	masks[MASK_RUNNABLE] = vgpu_pf_run_busy_runnable(pf) & admitted_mask(pf);
	masks[MASK_FIRST_PRIORITY_CLASS] = vgpu_pf_run_contract_first_priority_class(pf, competing);
}

/*
 * Choose a VF that may preempt the VF in the engine:
 *   - the VF whose gang slot is open, or
 *   - the VF that vgpu_pf_run_contract_pick() finds for its reservation; if the present run is from
 *     a reservation, too, only if the VF in the engine has a later deadline, or
 *   - a VF with reserve budget (pick.c), if its priority class is not lower than that of the VF in
 *     the engine, if the present run is neither from a reservation nor from a reserve budget, and
 *     if the VF in the engine was not overdue when its run was chosen.
 * No VF may preempt a run in a gang slot. Return: false if there is no such VF.
 */
bool vgpu_pf_run_decide_urgent(struct vgpu_pf *pf, struct vgpu_run *run)
{
	const struct vgpu_run *current = &pf->scheduler.run;
	const struct vgpu_vf_contract *own = &pf->vfs[current->vf].contract;
	uint32_t mask = admitted_mask(pf);
	uint32_t competing = vgpu_pf_run_busy_competing(pf) & mask;

	if (current->kind == VGPU_RUN_CONTRACT && vgpu_pf_run_gang_has(&pf->vfs[current->vf]))
		return false;
	if (vgpu_pf_run_contract_pick(pf, vgpu_pf_run_busy_runnable(pf) & mask, run) &&
	    (current->kind != VGPU_RUN_CONTRACT || vgpu_pf_run_gang_has(&pf->vfs[run->vf]) ||
	     pf->vfs[run->vf].contract.deadline_ns < own->deadline_ns)) {
		run->decision = DECISION_RESERVATION + 1;
		return true;
	}
	if (vgpu_pf_run_kind(current)->is_urgent || current->is_overdue)
		return false;
	competing = vgpu_pf_run_contract_before_priority_class(pf, competing,
							       own->terms.priority_class + 1);
	if (!vgpu_pf_run_pick_reserve(pf, competing, run))
		return false;
	run->decision = DECISION_RESERVE + 1;
	return true;
}

static bool pick_first_row(struct vgpu_pf *pf, struct vgpu_run *run)
{
	uint32_t masks[MASK_FIRST_PRIORITY_CLASS + 1];

	if (pf->scheduler.preemption == VGPU_PREEMPT_FOR_URGENT)
		return vgpu_pf_run_decide_urgent(pf, run);
	fill_masks(pf, masks);
	for (uint32_t i = 0; i < VGPU_COUNT_OF(decisions); i++) {
		uint32_t mask = masks[decisions[i].mask];

		if (!mask || !decisions[i].pick(pf, mask, run))
			continue;
		run->decision = i + 1;
		return true;
	}
	return false;
}

static bool pick_next(struct vgpu_pf *pf, struct vgpu_run *run)
{
	if (!pick_first_row(pf, run))
		return false;
	run->is_overdue = vgpu_pf_run_pick_is_overdue(pf, &pf->vfs[run->vf]);
	vgpu_pf_run_contract_limit(pf, run);
	return true;
}

/*
 * Chooses the next run. The VF for which the engine is preempted may have lost its right to
 * preempt, e.g. because a new table has no reserve budget for this VF. Then the core decides again.
 * If no VF runs, the new decision ignores the preemption; otherwise preempt.c checks again whether
 * the VF in the engine must leave.
 */
static bool choose(struct vgpu_pf *pf, struct vgpu_run *run)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	if (pick_next(pf, run))
		return true;
	if (scheduler->preemption != VGPU_PREEMPT_FOR_URGENT &&
	    scheduler->preemption != VGPU_PREEMPT_FOR_PRIORITY_CLASS)
		return false;
	scheduler->preemption = VGPU_PREEMPT_NONE;
	if (scheduler->state != VGPU_SCHEDULER_RUNNING)
		return pick_next(pf, run);
	vgpu_pf_run_preempt_consider(pf);
	return scheduler->preemption != VGPU_PREEMPT_NONE && pick_next(pf, run);
}

/* ---- the engine stays as it is ---- */

/*
 * True if a cap or gang slots limit the VF in the engine, and the VF is idle, or did not have the
 * limit when its run was chosen.
 */
static bool must_leave_for_limit(const struct vgpu_pf_scheduler *scheduler,
				 const struct vgpu_pf *pf)
{
	return vgpu_pf_run_contract_is_limited(pf, scheduler->run.vf) &&
	       (scheduler->is_idle || !scheduler->run.is_limited);
}

/* a VF that stayed in the engine without work has work again: from now on it runs uncontended */
static void continue_uncontended(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t vf = scheduler->run.vf;
	struct vgpu_run run;

	scheduler->work.announced |= 1u << (vf - 1);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_WAKE, vf, 1u << (vf - 1), 0);
	vgpu_pf_run_pick_set(&run, vf, VGPU_RUN_UNCONTENDED,
			     QUANTUM_UNCONTENDED_US * VGPU_NS_PER_US,
			     vgpu_pf_run_tables_quantum(pf, vf));
	vgpu_pf_run_engine_begin(pf, &run);
}

/* no row has found a VF: keeps the VF in the engine, or takes this VF out if it must leave */
static void keep_or_unload(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_run run;

	if (scheduler->run.vf == 0)
		return;
	/* a run without a VF: if the core begins this run, the engine becomes empty */
	vgpu_pf_run_pick_set(&run, 0, VGPU_RUN_IDLE_RESIDENT, 0, 0);
	if (vgpu_pf_run_engine_must_leave(pf)) {
		vgpu_pf_run_engine_begin(pf, &run);
		return;
	}
	if (scheduler->state != VGPU_SCHEDULER_EXPIRED) {
		if (must_leave_for_limit(scheduler, pf)) {
			vgpu_pf_run_engine_begin(pf, &run);
			return;
		}
		if (vgpu_pf_run_preempt_waiting(pf) && scheduler->exclusive_vf != scheduler->run.vf)
			return;
		if (vgpu_pf_run_preempt_has_woken(scheduler)) {
			continue_uncontended(pf);
			return;
		}
		/* the VF for which the engine was preempted no longer waits: continue */
		scheduler->run.contended_ns = 0;
		if (scheduler->run.granted_ns)
			vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE,
					  scheduler->run.granted_ns + SLICE_TIMER_SLACK_NS);
		return;
	}
	/* stay parked: an idle-resident run could exceed the cap, or run outside gang slots */
	if (vgpu_pf_run_contract_is_limited(pf, scheduler->run.vf))
		return;
	/* run the VF without work, so that its next doorbell is served at once */
	vgpu_pf_run_pick_set(&run, scheduler->run.vf, VGPU_RUN_IDLE_RESIDENT, 0,
			     vgpu_pf_run_tables_quantum(pf, scheduler->run.vf));
	vgpu_pf_run_engine_begin(pf, &run);
}

/* ---- when ---- */

/*
 * True if the core may decide with the busy bits that it read when the quantum began. The bits are
 * still valid if the quantum has ended and nothing else has happened: interrupts have reported all
 * wakes since then, and the run log says whether the VF that ran still has work. So the core
 * switches to the next VF at once, and reads the bits while that VF runs. If no other VF had work,
 * the result is false: the core then reads the bits first, which delays no other VF.
 */
static bool is_busy_current(const struct vgpu_pf_scheduler *scheduler)
{
	return scheduler->state == VGPU_SCHEDULER_EXPIRED && scheduler->run.is_accounted &&
	       scheduler->preemption == VGPU_PREEMPT_NONE && scheduler->work.is_fresh &&
	       (scheduler->work.busy & ~(1u << (scheduler->run.vf - 1)));
}

/* Choose the next run and begin it. No world switch may be in progress. */
void vgpu_pf_run_decide_now(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_run run;

	scheduler->is_decision_due = false;
	if (!is_busy_current(scheduler))
		vgpu_pf_run_busy_read(pf);
	else if (vgpu_pf_run_contract_update(pf))
		vgpu_pf_run_busy_announce(pf);
	if (!pf->device.is_attached)
		return;
	activate_pending_table(pf);
	vgpu_pf_run_share_update(pf);
	vgpu_pf_run_share_apply(pf);
	if (choose(pf, &run)) {
		vgpu_pf_run_engine_begin(pf, &run);
		return;
	}
	scheduler->preemption = VGPU_PREEMPT_NONE;
	keep_or_unload(pf);
}
