// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Run table executor
 *
 * Cycles through the table's entries and puts each VF into the engine for its quantum. The table is
 * somebody else's decision (vgpud); this file only carries it out, also when nobody is there.
 *
 *   EMPTY --decision--> SWITCHING --switched--> RUNNING --quantum over--> PARKED --decision--> ...
 *                           |                      +--wake, idle, pause--> decision
 *                           +--failed--> BROKEN --engine free again--> EMPTY
 *
 * A decision takes the first of
 *   1. the VF that stops the table (exclusive full access)
 *   2. a VF whose gang slot is open, with work or without; else one whose contract reserves
 *      service, with work and budget; the earliest deadline
 * and, of the first band in which a VF has work, VFs without tokens left out,
 *   3. a VF of the reserve section with work and budget; what it uses is taken off its own turns
 *   4. a VF with work that has been off the engine for longer than max_gap (short, charged)
 *   5. a slice that was cut, its rest
 *   6. the next entry whose VF has work, unless that brings a VF too far from its share: then the
 *      VF that is due first (share.c). VFs without an entry come after the last entry
 *   7. nobody: the VF in the engine stays there, unbounded (one with a cap stays parked)
 * Quanta end in the device (VGPU_VF0_QUANTUM_US); the timer here is only a net. Alone with work, a
 * VF runs on until another one wakes. Nothing is polled while the engine is idle.
 */
#include "pf-driver/core/run/state.h"
#include "pf-driver/hw/regs.h"

#define SLICE_NET_NS	(20 * VGPU_NS_PER_MS)
#define ABORTS_MAX	2u
#define RECOVER_MS	1000u
#define RECOVER_POLL_NS VGPU_NS_PER_MS

/* its run is not over, or not in the log yet: only the engine knows whether it has work */
static bool is_in_engine(const struct vgpu_pf_executor *executor, uint32_t vf)
{
	if (executor->state == VGPU_EXECUTOR_SWITCHING && executor->next.vf == vf)
		return true;
	return executor->run.vf == vf && (executor->state == VGPU_EXECUTOR_RUNNING ||
					  executor->state == VGPU_EXECUTOR_SWITCHING);
}

/* tells who has work now that had none or no tokens, and the other way round */
static void announce(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t held = vgpu_pf_run_contract_held(pf);
	uint32_t ready = executor->busy & ~held;
	uint32_t woken = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		uint32_t bit = VGPU_VF_BIT(vf);

		if (!((executor->announced ^ ready) & bit) || is_in_engine(executor, vf->number))
			continue;
		executor->announced ^= bit;
		if (ready & bit)
			woken |= bit;
		else
			vgpu_pf_event_simple(pf, VGPU_PF_EVENT_IDLE, vf->number,
					     executor->busy & held & bit ? VGPU_PF_IDLE_CAPPED
									 : VGPU_PF_IDLE_PARKED,
					     0);
	}
	if (woken)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_WAKE, (uint32_t)__builtin_ctz(woken) + 1,
				     woken, 0);
}

static void read_busy(struct vgpu_pf *pf)
{
	uint32_t busy = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_VM_BUSY_STATUS);
	uint64_t now = vgpu_pf_timer_now(pf);
	struct vgpu_vf *vf;
	uint32_t ready;

	pf->executor.busy = busy;
	vgpu_pf_run_contract_update(pf);
	ready = busy & ~vgpu_pf_run_contract_held(pf);
	vgpu_for_each_vf(pf, vf) {
		bool is_waiting = (ready & VGPU_VF_BIT(vf)) && pf->executor.run.vf != vf->number;

		if (!is_waiting)
			vf->service.waiting_since_ns = 0;
		else if (vf->service.waiting_since_ns == 0)
			vf->service.waiting_since_ns = now;
	}
	vgpu_pf_run_share_update(pf);
	announce(pf);
}

static void take_pending_table(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	if (!executor->is_pending)
		return;
	/* the new table starts at its first entry; what was cut is still owed (share.c) */
	executor->resume_vf = 0;
	executor->active = !executor->active;
	executor->is_pending = false;
	pf->table_generation = vgpu_pf_run_tables_active(pf)->generation;
	memset(executor->cursors, 0, sizeof(executor->cursors));
	vgpu_pf_run_contract_take(pf, VGPU_BUCKET_FULL);
	vgpu_pf_run_share_take(pf);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_TABLE, 0, vgpu_pf_run_tables_active(pf)->generation, 0);
	vgpu_pf_run_decide_start_cycle(pf);
}

/* ---- carrying it out ---- */

static uint32_t quantum_us(const struct vgpu_run *run)
{
	/* rounded up: 0 would mean unbounded */
	return (uint32_t)((run->granted_ns + VGPU_NS_PER_US - 1) / VGPU_NS_PER_US);
}

static void set_quantum(struct vgpu_pf *pf, const struct vgpu_run *run)
{
	struct vgpu_vf *vf = &pf->vfs[run->vf];
	uint32_t us = quantum_us(run);

	if (vf->service.quantum_us == us)
		return;
	if (!vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_QUANTUM_US, us))
		vf->service.quantum_us = us;
}

static void begin(struct vgpu_pf *pf, const struct vgpu_run *run)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	bool is_urgent = run->kind == VGPU_RUN_RESERVE || run->kind == VGPU_RUN_CONTRACT ||
			 executor->preemption == VGPU_PREEMPT_FOR_BAND;

	executor->next = *run;
	executor->state = VGPU_EXECUTOR_SWITCHING;
	executor->decided_ns = vgpu_pf_timer_now(pf);
	executor->preemption = VGPU_PREEMPT_NONE;
	executor->is_busy_fresh = false;
	executor->run.is_cut =
		executor->run.kind == VGPU_RUN_SLICE && !executor->run.is_accounted && is_urgent;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
	if (run->vf)
		set_quantum(pf, run);
	vgpu_pf_run_switch_start(pf, executor->run.vf, run->vf);
}

/* VFs with work that wait for the one in the engine, as last read; those of later bands do not */
static uint32_t waiting_mask(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t waiting =
		vgpu_pf_run_decide_competing(pf) & executor->busy & ~(1u << (executor->run.vf - 1));

	return vgpu_pf_run_contract_before_band(pf, waiting,
						pf->vfs[executor->run.vf].contract.terms.band + 1);
}

/* with a cap a VF is in the engine for as long as it has tokens, and only with work */
static bool exceeds_cap(const struct vgpu_pf_executor *executor, const struct vgpu_pf *pf)
{
	return vgpu_pf_run_contract_has_cap(pf, executor->run.vf) &&
	       (executor->is_idle || !executor->run.is_capped);
}

/* it rested, and has got work since, which no interrupt says */
static bool has_woken_in_engine(const struct vgpu_pf_executor *executor)
{
	return executor->run.kind == VGPU_RUN_REST && executor->run.vf &&
	       vgpu_has_bit(executor->busy, executor->run.vf);
}

/* from now on it runs like any other that is alone: in quanta, which are accounted for */
static void go_on_alone(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t vf = executor->run.vf;
	struct vgpu_run run;

	executor->announced |= 1u << (vf - 1);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_WAKE, vf, 1u << (vf - 1), 0);
	vgpu_pf_run_decide_set(&run, vf, VGPU_RUN_SOLE, QUANTUM_SOLE_US * VGPU_NS_PER_US,
			     vgpu_pf_run_decide_quantum(pf, vf));
	begin(pf, &run);
}

/* nobody has work, or nobody may take the engine */
static void rest(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run run;

	if (executor->run.vf == 0)
		return;
	vgpu_pf_run_decide_set(&run, 0, VGPU_RUN_REST, 0, 0);
	if (!vgpu_vf_is_runnable(&pf->vfs[executor->run.vf])) {
		begin(pf, &run);
		return;
	}
	if (executor->state != VGPU_EXECUTOR_PARKED) {
		if (exceeds_cap(executor, pf)) {
			begin(pf, &run);
			return;
		}
		if (waiting_mask(pf) && executor->exclusive_vf != executor->run.vf)
			return;
		if (has_woken_in_engine(executor)) {
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
	vgpu_pf_run_decide_set(&run, executor->run.vf, VGPU_RUN_REST, 0,
			     vgpu_pf_run_decide_quantum(pf, executor->run.vf));
	begin(pf, &run);
}

/* the VF in the engine keeps its slot without work; a reservation is only for work, a gang's not */
static bool is_strict(struct vgpu_pf *pf)
{
	const struct vgpu_run *run = &pf->executor.run;

	return (run->kind != VGPU_RUN_CONTRACT || vgpu_pf_run_gang_has(&pf->vfs[run->vf])) &&
	       vgpu_has_bit(vgpu_pf_run_contract_strict(pf), run->vf);
}

/* somebody of an earlier band waits for the VF in the engine, which is not on its reservation */
static bool is_outranked(struct vgpu_pf *pf, uint32_t waiting)
{
	const struct vgpu_pf_executor *executor = &pf->executor;

	return executor->exclusive_vf != executor->run.vf &&
	       vgpu_pf_run_contract_before_band(pf, waiting,
						pf->vfs[executor->run.vf].contract.terms.band);
}

/* with work, outside the engine, whatever its band or its tokens; or a gang whose slot is open */
static bool anybody_waits(struct vgpu_pf *pf)
{
	const struct vgpu_pf_executor *executor = &pf->executor;

	uint32_t others = vgpu_pf_run_decide_runnable(pf) & ~(1u << (executor->run.vf - 1));

	return (others & executor->busy) || vgpu_pf_run_gang_open(pf, others);
}

/* VFs outside the engine have work, as last read: does the one in the engine have to leave it? */
static void consider_waiting(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run run;
	uint32_t others;
	uint64_t now, end;

	if (executor->state != VGPU_EXECUTOR_RUNNING ||
	    executor->preemption == VGPU_PREEMPT_FOR_ANYONE)
		return;
	if (anybody_waits(pf) && !is_strict(pf) &&
	    (executor->is_idle || !vgpu_has_bit(executor->busy, executor->run.vf))) {
		executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
		return;
	}
	if (anybody_waits(pf) && vgpu_pf_run_decide_urgent(pf, &run)) {
		executor->preemption = VGPU_PREEMPT_FOR_RESERVE;
		return;
	}
	others = waiting_mask(pf);
	if (others == 0 && has_woken_in_engine(executor)) {
		executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
		return;
	}
	if (others == 0 || executor->run.kind == VGPU_RUN_CONTRACT)
		return;
	if (is_outranked(pf, others)) {
		executor->preemption = VGPU_PREEMPT_FOR_BAND;
		return;
	}
	if (executor->run.kind != VGPU_RUN_SOLE && executor->run.kind != VGPU_RUN_REST)
		return;
	if (executor->exclusive_vf == executor->run.vf || executor->run.contended_ns)
		return;
	/* it was alone until now; it may finish a quantum that began when it did */
	now = vgpu_pf_timer_now(pf);
	executor->run.contended_ns = now;
	end = executor->run.started_ns + executor->run.quantum_ns;
	if (end <= now)
		executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
	else
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE, end - now);
}

/* who is next; a reserve that went with its table leaves its VF waiting like any other */
static bool pick(struct vgpu_pf *pf, struct vgpu_run *run)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	if (vgpu_pf_run_decide_next(pf, run))
		return true;
	if (executor->preemption != VGPU_PREEMPT_FOR_RESERVE &&
	    executor->preemption != VGPU_PREEMPT_FOR_BAND)
		return false;
	executor->preemption = VGPU_PREEMPT_NONE;
	if (executor->state != VGPU_EXECUTOR_RUNNING)
		return vgpu_pf_run_decide_next(pf, run);
	consider_waiting(pf);
	return executor->preemption != VGPU_PREEMPT_NONE && vgpu_pf_run_decide_next(pf, run);
}

/*
 * A quantum has ended, and nothing else has happened: the bits were read when it began, wakes since
 * then have been told, and the run log says whether the VF that ran still has work. The next VF
 * need not wait for another look; that comes when it runs. If nobody else seems to have work,
 * nobody is in a hurry, and the look is worth its time.
 */
static bool knows_busy(const struct vgpu_pf_executor *executor)
{
	return executor->state == VGPU_EXECUTOR_PARKED && executor->run.is_accounted &&
	       executor->preemption == VGPU_PREEMPT_NONE && executor->is_busy_fresh &&
	       (executor->busy & ~(1u << (executor->run.vf - 1)));
}

static void decide(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_run run;

	executor->wants_decision = false;
	if (!knows_busy(executor))
		read_busy(pf);
	else if (vgpu_pf_run_contract_update(pf))
		announce(pf);
	if (!pf->device.is_attached)
		return;
	take_pending_table(pf);
	vgpu_pf_run_share_update(pf);
	vgpu_pf_run_share_settle(pf);
	if (pick(pf, &run)) {
		begin(pf, &run);
		return;
	}
	executor->preemption = VGPU_PREEMPT_NONE;
	rest(pf);
}

static bool must_leave(struct vgpu_pf *pf)
{
	uint32_t vf = pf->executor.run.vf;

	return vf != 0 && !vgpu_vf_is_runnable(&pf->vfs[vf]);
}

static void decide_if_due(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	bool is_due;

	if (executor->state == VGPU_EXECUTOR_SWITCHING || executor->state == VGPU_EXECUTOR_BROKEN)
		return;
	is_due = executor->state == VGPU_EXECUTOR_RUNNING
			 ? executor->preemption != VGPU_PREEMPT_NONE || must_leave(pf)
			 : executor->wants_decision || must_leave(pf);
	if (is_due)
		decide(pf);
}

/**
 * vgpu_pf_run_machine_look() - has the run in the engine ended, or has its VF to leave?
 * @pf: the PF, attached
 */
void vgpu_pf_run_machine_look(struct vgpu_pf *pf)
{
	if (pf->executor.state == VGPU_EXECUTOR_OFF)
		return;
	vgpu_pf_run_share_evict(pf);
	vgpu_pf_run_account_drain(pf);
}

/**
 * vgpu_pf_run_machine_decide() - decide if there is something to decide
 * @pf: the PF, attached
 */
void vgpu_pf_run_machine_decide(struct vgpu_pf *pf)
{
	if (pf->executor.state == VGPU_EXECUTOR_OFF)
		return;
	decide_if_due(pf);
	if (pf->device.is_attached)
		vgpu_pf_run_contract_arm(pf);
}

/* a VF that runs alone has no quantum whose end could be waited for */
static bool has_no_end(const struct vgpu_run *run)
{
	return run->vf && (run->kind == VGPU_RUN_SOLE || run->kind == VGPU_RUN_REST);
}

/**
 * vgpu_pf_run_machine_switched() - the world switch is complete
 * @pf: the PF
 */
void vgpu_pf_run_machine_switched(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t from = executor->run.vf;
	uint32_t to = executor->next.vf;
	uint64_t now = vgpu_pf_timer_now(pf);

	/* the entry of the run that has ended is there by now */
	vgpu_pf_run_account_drain(pf);
	executor->last = executor->run;
	executor->run = executor->next;
	executor->run.started_ns = now;
	executor->aborts = 0;
	executor->is_idle = false;
	executor->state = to ? VGPU_EXECUTOR_RUNNING : VGPU_EXECUTOR_EMPTY;
	executor->wants_decision = to == 0;
	/* running proves work, unless it only rests there or keeps a slot */
	if (to && executor->run.kind != VGPU_RUN_REST && !vgpu_pf_run_gang_has(&pf->vfs[to]))
		executor->announced |= 1u << (to - 1);
	if (from != to) {
		vgpu_pf_run_account_count_switch(pf, now - executor->decided_ns);
		if (to) {
			pf->vfs[to].service.switches++;
			pf->vfs[to].service.waiting_since_ns = 0;
		}
	}
	if (executor->run.granted_ns)
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE, executor->run.granted_ns + SLICE_NET_NS);
	/* the VF that has just left may have got work on its way out, and nobody says so */
	if (to) {
		/* if it has work; read_busy() knows */
		if (from && from != to)
			pf->vfs[from].service.waiting_since_ns = executor->decided_ns;
		read_busy(pf);
		executor->is_busy_fresh = true;
		consider_waiting(pf);
	}
	if (executor->is_pending && has_no_end(&executor->run))
		executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/**
 * vgpu_pf_run_machine_wake() - VFs outside the engine have work
 * @pf: the PF
 */
void vgpu_pf_run_machine_wake(struct vgpu_pf *pf)
{
	pf->executor.wants_decision = true;
	if (pf->executor.state == VGPU_EXECUTOR_OFF)
		return;
	read_busy(pf);
	consider_waiting(pf);
}

/**
 * vgpu_pf_run_machine_watch() - a wake may have been lost
 * @pf: the PF
 *
 * Who waits for a VF without an end of its own would wait for ever.
 */
void vgpu_pf_run_machine_watch(struct vgpu_pf *pf)
{
	if (pf->executor.state == VGPU_EXECUTOR_RUNNING && has_no_end(&pf->executor.run))
		vgpu_pf_run_machine_wake(pf);
}

/**
 * vgpu_pf_run_machine_idle() - the VF in the engine has run out of work
 * @pf: the PF
 */
void vgpu_pf_run_machine_idle(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	if (executor->state == VGPU_EXECUTOR_RUNNING)
		vgpu_pf_run_contract_idle(&pf->vfs[executor->run.vf]);
	if (executor->state != VGPU_EXECUTOR_RUNNING || is_strict(pf))
		return;
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_IDLE, executor->run.vf, VGPU_PF_IDLE_RUNNING, 0);
	executor->announced &= ~(1u << (executor->run.vf - 1));
	executor->is_idle = true;
	if (executor->run.worked_ns == 0)
		executor->run.worked_ns = vgpu_pf_timer_now(pf) - executor->run.started_ns;
	vgpu_pf_run_share_update(pf);
	executor->preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/* ACTIVE_FUNCTION_STATUS in the dword of ACTIVE_FUNCTION_ID */
static uint32_t function_state(uint32_t active)
{
	uint32_t shift = 8 * (GPUIOV_SCH_ACTIVE_FUNCTION_STATUS - GPUIOV_SCH_ACTIVE_FUNCTION_ID);

	return active >> shift & 0xffu;
}

/**
 * vgpu_pf_run_machine_expired() - the device says that a quantum is over
 * @pf: the PF
 *
 * The run log tells which one. Without its entry the status of the engine does.
 */
void vgpu_pf_run_machine_expired(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t active;

	vgpu_pf_run_account_drain(pf);
	if (executor->state != VGPU_EXECUTOR_RUNNING)
		return;
	active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);
	if (function_state(active) != GPUIOV_FUNCTION_IDLE)
		return;
	executor->state = VGPU_EXECUTOR_PARKED;
	executor->wants_decision = true;
}

/**
 * vgpu_pf_run_machine_slice_timer() - the running slice must be over
 * @pf: the PF
 *
 * Either a VF that ran alone has used its quantum, or the device did not park itself in time or its
 * interrupt was lost.
 */
void vgpu_pf_run_machine_slice_timer(struct vgpu_pf *pf)
{
	vgpu_pf_run_machine_expired(pf);
	if (pf->executor.state == VGPU_EXECUTOR_RUNNING)
		pf->executor.preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/**
 * vgpu_pf_run_machine_evict() - a VF in the engine has to leave it
 * @pf: the PF
 */
void vgpu_pf_run_machine_evict(struct vgpu_pf *pf)
{
	pf->executor.wants_decision = true;
}

/**
 * vgpu_pf_run_machine_set_exclusive() - let one VF stop the table
 * @pf: the PF
 * @vf: the one, NULL for none
 */
void vgpu_pf_run_machine_set_exclusive(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	pf->executor.exclusive_vf = vf ? vf->number : 0;
	pf->executor.wants_decision = true;
	if (pf->executor.state == VGPU_EXECUTOR_RUNNING)
		pf->executor.preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/**
 * vgpu_pf_run_machine_holds() - is this VF in the engine, or on its way into or out of it?
 * @pf: the PF
 * @vf: the VF
 */
bool vgpu_pf_run_machine_holds(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_pf_executor *executor = &pf->executor;

	if (executor->state == VGPU_EXECUTOR_OFF || executor->state == VGPU_EXECUTOR_BROKEN)
		return false;
	if (executor->state == VGPU_EXECUTOR_SWITCHING && executor->next.vf == vf->number)
		return true;
	return executor->run.vf == vf->number;
}

/**
 * vgpu_pf_run_machine_is_loaded() - is this VF in the engine, and on no way into it?
 * @pf: the PF
 * @vf: the VF
 */
bool vgpu_pf_run_machine_is_loaded(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_pf_executor *executor = &pf->executor;

	return executor->run.vf == vf->number && (executor->state == VGPU_EXECUTOR_RUNNING ||
						  executor->state == VGPU_EXECUTOR_PARKED);
}

/**
 * vgpu_pf_run_machine_exclusive() - the VF that stops the table
 * @pf: the PF
 *
 * Return: VF number; 0: none.
 */
uint32_t vgpu_pf_run_machine_exclusive(const struct vgpu_pf *pf)
{
	return pf->executor.exclusive_vf;
}

/**
 * vgpu_pf_run_machine_reset_vf() - a VF starts with a clean account
 * @pf: the PF
 * @vf: whose
 */
void vgpu_pf_run_machine_reset_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	memset(&vf->service, 0, sizeof(vf->service));
	vf->service.quantum_us = UINT32_MAX;
	vgpu_pf_run_contract_reset_vf(vf);
	pf->executor.wants_decision = true;
}

/**
 * vgpu_pf_run_machine_lost() - the VF in the engine was reset there by its client: nobody is in it
 * @pf: the PF
 */
void vgpu_pf_run_machine_lost(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	executor->run.vf = 0;
	executor->state = VGPU_EXECUTOR_EMPTY;
	executor->wants_decision = true;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
}

/* ---- failure ---- */

/* what the device says is in the engine */
static uint32_t loaded_vf(struct vgpu_pf *pf)
{
	uint32_t active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);
	uint32_t vf = (active & 0x1fu) + 1;

	return (active >> 31) && vf <= pf->device.total_vfs ? vf : 0;
}

/* one there that refuses every command */
static uint32_t stalled_vf(struct vgpu_pf *pf)
{
	uint32_t active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);

	return function_state(active) == GPUIOV_FUNCTION_STALLED ? loaded_vf(pf) : 0;
}

static void wait_for_engine(struct vgpu_pf *pf)
{
	pf->executor.state = VGPU_EXECUTOR_BROKEN;
	pf->executor.is_recovering = true;
	pf->executor.recover_deadline_ns =
		vgpu_pf_timer_now(pf) + vgpu_pf_timer_scaled_ms(pf, RECOVER_MS);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_RECOVER, RECOVER_POLL_NS);
}

/* a refused command: a stalled function is to blame; else our own picture may be stale, at first */
static uint32_t blame_for_abort(struct vgpu_pf *pf, uint32_t culprit)
{
	if (stalled_vf(pf))
		return stalled_vf(pf);
	return pf->executor.aborts++ < ABORTS_MAX ? 0 : culprit;
}

/**
 * vgpu_pf_run_machine_failed() - a world switch failed
 * @pf: the PF
 * @culprit: VF number to blame; 0: nobody
 * @reason: how
 */
void vgpu_pf_run_machine_failed(struct vgpu_pf *pf, uint32_t culprit, enum vgpu_pf_reason reason)
{
	wait_for_engine(pf);
	pf->executor.run.vf = 0;
	if (reason == VGPU_PF_REASON_BAD_STATUS)
		culprit = blame_for_abort(pf, culprit);
	if (culprit)
		pf->vfs[culprit].control.hang = reason;
}

/* what is in the engine decides how we go on; a VF that may not be there is taken out */
static void resume(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint32_t active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);
	bool is_running = function_state(active) == GPUIOV_FUNCTION_ACTIVE;
	uint32_t vf = loaded_vf(pf);

	/* nobody knows how long it has run: as if it had been alone until now */
	vgpu_pf_run_decide_set(&executor->run, vf, VGPU_RUN_SOLE, QUANTUM_SOLE_US * VGPU_NS_PER_US,
			     vf ? vgpu_pf_run_decide_quantum(pf, vf) : 0);
	executor->run.is_accounted = !is_running;
	executor->run.started_ns = vgpu_pf_timer_now(pf);
	executor->is_idle = false;
	executor->wants_decision = true;
	executor->state = VGPU_EXECUTOR_EMPTY;
	if (vf == 0)
		return;
	executor->state = is_running ? VGPU_EXECUTOR_RUNNING : VGPU_EXECUTOR_PARKED;
	vgpu_pf_run_machine_wake(pf);
}

/* a stalled VF can be tried again if that leads to its reset; else its reset is waited for */
static bool is_engine_usable(struct vgpu_pf *pf)
{
	uint32_t stalled = stalled_vf(pf);

	if (!vgpu_pf_run_switch_is_engine_free(pf))
		return false;
	return !stalled || vgpu_vf_is_in_service(&pf->vfs[stalled]);
}

/**
 * vgpu_pf_run_machine_recover() - is the engine usable again?
 * @pf: the PF
 */
void vgpu_pf_run_machine_recover(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	if (!executor->is_recovering)
		return;
	if (!is_engine_usable(pf)) {
		if (!pf->device.is_attached)
			return;
		if (vgpu_pf_timer_now(pf) < executor->recover_deadline_ns) {
			vgpu_pf_timer_set(pf, VGPU_PF_TIMER_RECOVER, RECOVER_POLL_NS);
			return;
		}
		pf->wants_device_reset = true;
		return;
	}
	executor->is_recovering = false;
	resume(pf);
}

/* ---- start and stop ---- */

/**
 * vgpu_pf_run_machine_start() - begin to schedule
 * @pf: the PF, attached; VFs are in their states
 *
 * A VF that an earlier core left in the engine is taken over there.
 */
void vgpu_pf_run_machine_start(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;

	executor->resume_vf = 0;
	executor->exclusive_vf = 0;
	executor->is_recovering = false;
	executor->preemption = VGPU_PREEMPT_NONE;
	executor->last.vf = 0;
	if (vgpu_pf_run_tables_active(pf)->count == 0)
		vgpu_pf_run_tables_fallback(pf, vgpu_pf_run_tables_active(pf));
	pf->table_generation = vgpu_pf_run_tables_active(pf)->generation;
	vgpu_pf_run_contract_take(pf, VGPU_BUCKET_EMPTY);
	vgpu_pf_run_share_take(pf);
	vgpu_pf_run_decide_start_cycle(pf);
	if (!vgpu_pf_run_switch_is_engine_free(pf)) {
		/* a command of the core before: let it end */
		executor->run.vf = 0;
		wait_for_engine(pf);
		return;
	}
	resume(pf);
}

/**
 * vgpu_pf_run_machine_stop() - the device is gone, or will be reset
 * @pf: the PF
 */
void vgpu_pf_run_machine_stop(struct vgpu_pf *pf)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_vf *vf;

	vgpu_pf_run_account_drain(pf);
	vgpu_pf_run_switch_abandon(pf);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_RECOVER);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_CONTRACT);
	executor->state = VGPU_EXECUTOR_OFF;
	executor->is_recovering = false;
	executor->run.vf = 0;
	executor->last.vf = 0;
	executor->resume_vf = 0;
	vgpu_for_each_vf(pf, vf)
		vf->service.quantum_us = UINT32_MAX;
}
