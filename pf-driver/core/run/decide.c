// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: The decision
 *
 * Who goes into the engine next: the first row of the table below that finds somebody. Quanta end
 * in the device (VGPU_VF0_QUANTUM_US). Alone with work, a VF runs on until another one wakes. If no
 * row finds anybody, the VF in the engine stays there, unbounded (one with a cap stays parked).
 * Nothing is polled while the engine is idle.
 */
#include "pf-driver/core/run/internal.h"
#include "pf-driver/hw/regs.h"

static void take_pending_table(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	if (!executor->tables.is_pending)
		return;
	/* the new table starts at its first entry; what was cut is still owed (share.c) */
	executor->cut.vf = 0;
	executor->tables.active = !executor->tables.active;
	executor->tables.is_pending = false;
	pf->table_generation = vgpu_pf_run_tables_active(pf)->generation;
	memset(executor->tables.cursors, 0, sizeof(executor->tables.cursors));
	vgpu_pf_run_contract_take(pf, VGPU_BUCKET_FULL);
	vgpu_pf_run_share_take(pf);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_TABLE, 0, vgpu_pf_run_tables_active(pf)->generation,
			     0);
	vgpu_pf_run_pick_start_cycle(pf);
}

/* ---- the order ---- */

/* who may be chosen, of those with work: nobody else while one stops the table */
static uint32_t admitted(struct vgpu_pf *pf)
{
	const struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t mask = UINT32_MAX;

	if (executor->exclusive_vf)
		mask = 1u << (executor->exclusive_vf - 1);
	/* a VF in the middle of its quantum only makes room for others */
	if (executor->state == VGPU_EXECUTOR_RUNNING)
		mask &= ~(1u << (executor->run.vf - 1));
	return mask;
}

enum decision {
	DECISION_EXCLUSIVE = 0,
	DECISION_RESERVATION,
	DECISION_RESERVE,
	DECISION_RESCUE,
	DECISION_RESUMED,
	DECISION_SOLE,
	DECISION_SHARE,
};

/* who may be chosen by a row */
enum decision_who {
	WHO_ADMITTED = 0, /* with work, or strict; nobody else while one VF stops the table */
	WHO_RUNNABLE,	  /* the same, with work or without, with tokens or without */
	WHO_FIRST_BAND,	  /* of the admitted ones, those of the first band with work */
};

struct decision_row {
	const char *name;
	enum decision_who who;
	bool (*pick)(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
};

static const struct decision_row decisions[] = {
	/* exclusive full access */
	[DECISION_EXCLUSIVE] = {"stops the table", WHO_ADMITTED, vgpu_pf_run_pick_exclusive},
	/* a gang whose slot is open; else work and budget, the earliest deadline */
	[DECISION_RESERVATION] = {"reservation", WHO_RUNNABLE, vgpu_pf_run_contract_pick},
	/* with work and budget; what it uses is taken off its own turns */
	[DECISION_RESERVE] = {"reserve section", WHO_FIRST_BAND, vgpu_pf_run_pick_reserve},
	/* with work, off the engine for longer than max_gap: short, charged */
	[DECISION_RESCUE] = {"waited too long", WHO_FIRST_BAND, vgpu_pf_run_pick_rescue},
	[DECISION_RESUMED] = {"rest of a cut slice", WHO_FIRST_BAND, vgpu_pf_run_pick_resumed},
	[DECISION_SOLE] = {"alone", WHO_FIRST_BAND, vgpu_pf_run_pick_sole},
	/*
	 * the next entry whose VF has work, unless that brings a VF too far from its share: then
	 * the VF that is due first. VFs without an entry come after the last entry
	 */
	[DECISION_SHARE] = {"turn or share", WHO_FIRST_BAND, vgpu_pf_run_pick_share},
};

/**
 * vgpu_pf_run_decide_name() - what a decision is called
 * @decision: number in struct vgpu_run; 0: none
 */
const char *vgpu_pf_run_decide_name(uint32_t decision)
{
	if (decision == 0 || decision > VGPU_COUNT_OF(decisions))
		return "none";
	return decisions[decision - 1].name;
}

/* who may be chosen by each kind of row */
static void fill_masks(struct vgpu_pf *pf, uint32_t masks[WHO_FIRST_BAND + 1])
{
	const struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t competing = vgpu_pf_run_busy_competing(pf) & admitted(pf);

	if (executor->preemption == VGPU_PREEMPT_FOR_BAND)
		competing = vgpu_pf_run_contract_before_band(
			pf, competing, pf->vfs[executor->run.vf].contract.terms.band);
	masks[WHO_ADMITTED] = competing;
	masks[WHO_RUNNABLE] = vgpu_pf_run_busy_runnable(pf) & admitted(pf);
	masks[WHO_FIRST_BAND] = vgpu_pf_run_contract_first_band(pf, competing);
}

/**
 * vgpu_pf_run_decide_urgent() - who may cut the run in the engine, if anybody
 * @pf: the PF; a VF is in the engine
 * @run: filled in
 *
 * A gang whose slot is open; a reservation with an earlier deadline than the one in the engine;
 * else, if the run is neither reserved nor an advance, an advance of the reserve section.
 */
bool vgpu_pf_run_decide_urgent(struct vgpu_pf *pf, struct vgpu_run *run)
{
	const struct vgpu_run *current = &pf->executor.run;
	const struct vgpu_vf_contract *own = &pf->vfs[current->vf].contract;
	uint32_t mask = admitted(pf);
	uint32_t competing = vgpu_pf_run_busy_competing(pf) & mask;

	if (current->kind == VGPU_RUN_CONTRACT && vgpu_pf_run_gang_has(&pf->vfs[current->vf]))
		return false;
	if (vgpu_pf_run_contract_pick(pf, vgpu_pf_run_busy_runnable(pf) & mask, run) &&
	    (current->kind != VGPU_RUN_CONTRACT || vgpu_pf_run_gang_has(&pf->vfs[run->vf]) ||
	     pf->vfs[run->vf].contract.deadline_ns < own->deadline_ns)) {
		run->decision = DECISION_RESERVATION + 1;
		return true;
	}
	if (vgpu_pf_run_kind(current)->is_urgent)
		return false;
	competing = vgpu_pf_run_contract_before_band(pf, competing, own->terms.band + 1);
	if (!vgpu_pf_run_pick_reserve(pf, competing, run))
		return false;
	run->decision = DECISION_RESERVE + 1;
	return true;
}

static bool first_of_order(struct vgpu_pf *pf, struct vgpu_run *run)
{
	uint32_t masks[WHO_FIRST_BAND + 1];

	if (pf->executor.preemption == VGPU_PREEMPT_FOR_RESERVE)
		return vgpu_pf_run_decide_urgent(pf, run);
	fill_masks(pf, masks);
	for (uint32_t i = 0; i < VGPU_COUNT_OF(decisions); i++) {
		uint32_t mask = masks[decisions[i].who];

		if (!mask || !decisions[i].pick(pf, mask, run))
			continue;
		run->decision = i + 1;
		return true;
	}
	return false;
}

static bool pick_next(struct vgpu_pf *pf, struct vgpu_run *run)
{
	if (!first_of_order(pf, run))
		return false;
	vgpu_pf_run_contract_limit(pf, run);
	return true;
}

/* who is next; a reserve that went with its table leaves its VF waiting like any other */
static bool choose(struct vgpu_pf *pf, struct vgpu_run *run)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	if (pick_next(pf, run))
		return true;
	if (executor->preemption != VGPU_PREEMPT_FOR_RESERVE &&
	    executor->preemption != VGPU_PREEMPT_FOR_BAND)
		return false;
	executor->preemption = VGPU_PREEMPT_NONE;
	if (executor->state != VGPU_EXECUTOR_RUNNING)
		return pick_next(pf, run);
	vgpu_pf_run_preempt_consider(pf);
	return executor->preemption != VGPU_PREEMPT_NONE && pick_next(pf, run);
}

/* ---- the engine stays as it is ---- */

/* with a cap a VF is in the engine for as long as it has tokens, and only with work */
static bool exceeds_cap(const struct vgpu_pf_executor *executor, const struct vgpu_pf *pf)
{
	return vgpu_pf_run_contract_has_cap(pf, executor->run.vf) &&
	       (executor->is_idle || !executor->run.is_capped);
}

/* from now on it runs like any other that is alone: in quanta, which are accounted for */
static void go_on_alone(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t vf = executor->run.vf;
	struct vgpu_run run;

	executor->work.announced |= 1u << (vf - 1);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_WAKE, vf, 1u << (vf - 1), 0);
	vgpu_pf_run_pick_set(&run, vf, VGPU_RUN_SOLE, QUANTUM_SOLE_US * VGPU_NS_PER_US,
			     vgpu_pf_run_tables_quantum(pf, vf));
	vgpu_pf_run_engine_begin(pf, &run);
}

/* nobody has work, or nobody may take the engine */
static void rest(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run run;

	if (executor->run.vf == 0)
		return;
	vgpu_pf_run_pick_set(&run, 0, VGPU_RUN_REST, 0, 0);
	if (!vgpu_vf_is_runnable(&pf->vfs[executor->run.vf])) {
		vgpu_pf_run_engine_begin(pf, &run);
		return;
	}
	if (executor->state != VGPU_EXECUTOR_PARKED) {
		if (exceeds_cap(executor, pf)) {
			vgpu_pf_run_engine_begin(pf, &run);
			return;
		}
		if (vgpu_pf_run_preempt_waiting(pf) && executor->exclusive_vf != executor->run.vf)
			return;
		if (vgpu_pf_run_preempt_has_woken(executor)) {
			go_on_alone(pf);
			return;
		}
		/* whoever it was to be left for has gone; its quantum goes on */
		executor->run.contended_ns = 0;
		if (executor->run.granted_ns)
			vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE,
					  executor->run.granted_ns + SLICE_NET_NS);
		return;
	}
	/* it would rest there without an end */
	if (vgpu_pf_run_contract_has_cap(pf, executor->run.vf))
		return;
	/* so that its next doorbell is served at once */
	vgpu_pf_run_pick_set(&run, executor->run.vf, VGPU_RUN_REST, 0,
			     vgpu_pf_run_tables_quantum(pf, executor->run.vf));
	vgpu_pf_run_engine_begin(pf, &run);
}

/* ---- when ---- */

/*
 * A quantum has ended, and nothing else has happened: the bits were read when it began, wakes since
 * then have been told, and the run log says whether the VF that ran still has work. The next VF
 * need not wait for another look; that comes when it runs. If nobody else seems to have work,
 * nobody is in a hurry, and the look is worth its time.
 */
static bool knows_busy(const struct vgpu_pf_executor *executor)
{
	return executor->state == VGPU_EXECUTOR_PARKED && executor->run.is_accounted &&
	       executor->preemption == VGPU_PREEMPT_NONE && executor->work.is_fresh &&
	       (executor->work.busy & ~(1u << (executor->run.vf - 1)));
}

/**
 * vgpu_pf_run_decide_now() - who is in the engine from now on
 * @pf: the PF, attached; no world switch is under way
 */
void vgpu_pf_run_decide_now(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run run;

	executor->wants_decision = false;
	if (!knows_busy(executor))
		vgpu_pf_run_busy_read(pf);
	else if (vgpu_pf_run_contract_update(pf))
		vgpu_pf_run_busy_announce(pf);
	if (!pf->device.is_attached)
		return;
	take_pending_table(pf);
	vgpu_pf_run_share_update(pf);
	vgpu_pf_run_share_settle(pf);
	if (choose(pf, &run)) {
		vgpu_pf_run_engine_begin(pf, &run);
		return;
	}
	executor->preemption = VGPU_PREEMPT_NONE;
	rest(pf);
}
