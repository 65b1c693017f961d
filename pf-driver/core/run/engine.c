// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Carries out the decisions of decide.c, and handles events of the engine: world switches that end
 * or fail, runs (periods of a VF in the engine) that end, and VFs that wake. The device ends quanta
 * by itself; the slice timer ends a quantum that the device has not ended. If another VF begins to
 * wait during an endless run (kind.c), the slice timer also ends this run after the quantum of its
 * VF.
 */
#include "pf-driver/core/run/internal.h"
#include "pf-driver/hw/regs.h"

/*
 * if no VF is stalled, the core blames no VF for the first ABORTS_MAX commands that are refused
 * after a complete switch
 */
#define ABORTS_MAX 2u

static uint32_t quantum_us(const struct vgpu_run *run)
{
	/* rounded up, because a quantum of 0 would mean no limit */
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

/* Carry out a decision: begin the world switch to run->vf (0: empty the engine). */
void vgpu_pf_run_engine_begin(struct vgpu_pf *pf, const struct vgpu_run *run)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	bool is_urgent = vgpu_pf_run_kind(run)->is_urgent ||
			 scheduler->preemption == VGPU_PREEMPT_FOR_PRIORITY_CLASS;

	scheduler->next = *run;
	scheduler->run.is_cut = vgpu_pf_run_kind(&scheduler->run)->may_be_cut &&
				!scheduler->run.is_accounted && is_urgent;
	vgpu_pf_run_machine_step(pf, RUN_INPUT_DECIDED);
	if (run->vf)
		set_quantum(pf, run);
	vgpu_pf_run_switch_start(pf, scheduler->run.vf, run->vf);
}

/* handles the runs whose end the device has logged */
static void handle_ended_runs(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_run_end end;

	for (uint32_t i = 0; i < RUN_LOG_ENTRIES && vgpu_pf_run_account_next(pf, &end); i++) {
		if (end.has_no_work)
			scheduler->work.is_fresh = false;
		if (end.cut_ns) {
			scheduler->cut.vf = end.vf;
			scheduler->cut.left_ns = end.cut_ns;
		}
		if (end.is_current && scheduler->state == VGPU_SCHEDULER_RUNNING)
			vgpu_pf_run_machine_step(pf, end.is_reset ? RUN_INPUT_RESET_INSIDE
								  : RUN_INPUT_QUANTUM_OVER);
	}
}

/* counts the switch, unless it only began another run of the VF in the engine */
static void record_switch(struct vgpu_pf *pf, uint32_t from, uint32_t to, uint64_t now)
{
	if (from == to)
		return;
	vgpu_pf_run_account_count_switch(pf, now - pf->scheduler.decided_ns);
	if (!to)
		return;
	pf->vfs[to].service.switches++;
	pf->vfs[to].service.waiting_since_ns = 0;
}

/* reads the busy bits: no interrupt reports work that a VF still had when it left the engine */
static void read_work_after_switch(struct vgpu_pf *pf, uint32_t from)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	/* vgpu_pf_run_busy_read() clears the start of the wait if the VF has no work */
	if (from && from != scheduler->run.vf)
		pf->vfs[from].service.waiting_since_ns = scheduler->decided_ns;
	vgpu_pf_run_busy_read(pf);
	scheduler->work.is_fresh = true;
	vgpu_pf_run_preempt_consider(pf);
}

/* Handle a world switch that is complete. */
void vgpu_pf_run_engine_switched(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t from = scheduler->run.vf;
	uint32_t to = scheduler->next.vf;
	uint64_t now = vgpu_pf_timer_now(pf);

	/* the log now has the entry of the run that the switch ended */
	handle_ended_runs(pf);
	scheduler->last = scheduler->run;
	scheduler->run = scheduler->next;
	scheduler->run.started_ns = now;
	scheduler->aborts = 0;
	vgpu_pf_run_machine_step(pf, to ? RUN_INPUT_LOADED : RUN_INPUT_UNLOADED);
	/*
	 * the event RUN at the end of this run will tell clients that the VF had work, so no WAKE
	 * is due; idle-resident runs (kind.c) and gang slots may be without work
	 */
	if (to && scheduler->run.kind != VGPU_RUN_IDLE_RESIDENT &&
	    !vgpu_pf_run_gang_has(&pf->vfs[to]))
		scheduler->work.announced |= 1u << (to - 1);
	record_switch(pf, from, to, now);
	if (scheduler->run.granted_ns)
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SLICE,
				  scheduler->run.granted_ns + SLICE_TIMER_SLACK_NS);
	if (to)
		read_work_after_switch(pf, from);
	/* an endless run must not delay the pending table */
	if (scheduler->tables.is_pending && vgpu_pf_run_kind_is_endless(&scheduler->run))
		scheduler->preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/* ---- events of the run in the engine ---- */

/* Handle a wake: VFs off the engine may have new work, budgets, slots or tokens. */
void vgpu_pf_run_engine_wake(struct vgpu_pf *pf)
{
	pf->scheduler.is_decision_due = true;
	if (pf->scheduler.state == VGPU_SCHEDULER_OFF)
		return;
	vgpu_pf_run_busy_read(pf);
	vgpu_pf_run_preempt_consider(pf);
}

/* Look for VFs whose WAKE was lost: otherwise they could wait for ever during an endless run. */
void vgpu_pf_run_engine_watch(struct vgpu_pf *pf)
{
	if (pf->scheduler.state == VGPU_SCHEDULER_RUNNING &&
	    vgpu_pf_run_kind_is_endless(&pf->scheduler.run))
		vgpu_pf_run_engine_wake(pf);
}

/* Handle the interrupt GFX_VM_IDLE: the VF in the engine has run out of work. */
void vgpu_pf_run_engine_idle(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	if (scheduler->state == VGPU_SCHEDULER_RUNNING)
		pf->vfs[scheduler->run.vf].contract.is_awake = false;
	if (scheduler->state != VGPU_SCHEDULER_RUNNING || vgpu_pf_run_preempt_is_strict(pf))
		return;
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_IDLE, scheduler->run.vf, VGPU_PF_IDLE_RUNNING, 0);
	scheduler->work.announced &= ~(1u << (scheduler->run.vf - 1));
	scheduler->is_idle = true;
	if (scheduler->run.worked_ns == 0)
		scheduler->run.worked_ns = vgpu_pf_timer_now(pf) - scheduler->run.started_ns;
	vgpu_pf_run_share_update(pf);
	scheduler->preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/* extracts ACTIVE_FUNCTION_STATUS (enum gpuiov_function_state) from a read of ACTIVE_FUNCTION_ID */
static uint32_t function_state(uint32_t active)
{
	uint32_t shift = 8 * (GPUIOV_SCH_ACTIVE_FUNCTION_STATUS - GPUIOV_SCH_ACTIVE_FUNCTION_ID);

	return active >> shift & 0xffu;
}

/*
 * Handle the interrupt GFX_QUANTUM_EXPIRED: end the present run if the run log or the function
 * state of the device shows that its quantum has ended. The interrupt may be about an earlier run.
 */
void vgpu_pf_run_engine_expired(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t active;

	handle_ended_runs(pf);
	if (scheduler->state != VGPU_SCHEDULER_RUNNING)
		return;
	active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);
	if (function_state(active) != GPUIOV_FUNCTION_IDLE)
		return;
	vgpu_pf_run_machine_step(pf, RUN_INPUT_QUANTUM_OVER);
}

/*
 * Handle the slice timer: end the present run if it is over; otherwise preempt its VF. The timer
 * has fired because the VF of an endless run has had its quantum, the device has not ended the
 * quantum, or the device's interrupt was lost.
 */
void vgpu_pf_run_engine_slice_timer(struct vgpu_pf *pf)
{
	vgpu_pf_run_engine_expired(pf);
	if (pf->scheduler.state == VGPU_SCHEDULER_RUNNING)
		pf->scheduler.preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/* Let only `vf` run, because it has exclusive full access. NULL: let all VFs run again. */
void vgpu_pf_run_engine_set_exclusive(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	pf->scheduler.exclusive_vf = vf ? vf->number : 0;
	pf->scheduler.is_decision_due = true;
	if (pf->scheduler.state == VGPU_SCHEDULER_RUNNING)
		pf->scheduler.preemption = VGPU_PREEMPT_FOR_ANYONE;
}

/*
 * Return: true if the VF is in the engine, or is being switched in or out. While the engine is
 * broken, the result is false for all VFs, with one exception: if a command that an earlier core
 * gave is still in execution, or a command could not be written, the core cannot know which VF is
 * in the engine. Then the result is true for every VF in the states READY and RUNNING.
 */
bool vgpu_pf_run_engine_holds(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	if (scheduler->state == VGPU_SCHEDULER_BROKEN)
		return scheduler->is_vf_unknown && vgpu_vf_is_in_service(vf);
	return scheduler->run.vf == vf->number ||
	       (scheduler->state == VGPU_SCHEDULER_SWITCHING && scheduler->next.vf == vf->number);
}

/* Return: true if the VF is in the engine and no world switch is in progress. */
bool vgpu_pf_run_engine_is_loaded(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	return scheduler->run.vf == vf->number && scheduler->state != VGPU_SCHEDULER_SWITCHING;
}

/* Get the VF in exclusive full access. Return: VF number; 0: none. */
uint32_t vgpu_pf_run_engine_exclusive(const struct vgpu_pf *pf)
{
	return pf->scheduler.exclusive_vf;
}

/* Clear the counters of a VF that is being provisioned, and reset its tokens and budget. */
void vgpu_pf_run_engine_reset_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	memset(&vf->service, 0, sizeof(vf->service));
	vf->service.quantum_us = UINT32_MAX;
	vgpu_pf_run_contract_reset_vf(vf);
	pf->scheduler.is_decision_due = true;
}

/* ---- failure ---- */

/* the VF that the device reports to be in the engine; 0: none */
static uint32_t loaded_vf(struct vgpu_pf *pf)
{
	uint32_t active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);
	uint32_t vf = (active & 0x1fu) + 1; /* the field is the VF number - 1 */

	/* bit 31: a VF is loaded; all ones (the device is gone) gives VF32, which does not exist */
	return (active >> 31) && vf <= pf->device.total_vfs ? vf : 0;
}

/* the VF in the engine if it is stalled (the device then refuses all commands); 0: none */
static uint32_t stalled_vf(struct vgpu_pf *pf)
{
	uint32_t active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);

	return function_state(active) == GPUIOV_FUNCTION_STALLED ? loaded_vf(pf) : 0;
}

/*
 * Finds the guilty VF after a refused command; 0: none. A stalled VF is guilty. If no VF is
 * stalled, the core may have acted on an old state of the engine. So the core blames the suspect
 * only after ABORTS_MAX earlier refusals without a complete switch in between.
 */
static uint32_t find_guilty_of_abort(struct vgpu_pf *pf, uint32_t suspect)
{
	if (stalled_vf(pf))
		return stalled_vf(pf);
	return pf->scheduler.aborts++ < ABORTS_MAX ? 0 : suspect;
}

/* Handle the failure of a world switch. guilty: the VF that seems to have caused the failure. */
void vgpu_pf_run_engine_failed(struct vgpu_pf *pf, uint32_t guilty, enum vgpu_pf_reason reason)
{
	vgpu_pf_run_machine_step(pf, RUN_INPUT_FAILED);
	pf->scheduler.is_vf_unknown = pf->sw.is_unwritten;
	if (reason == VGPU_PF_REASON_BAD_STATUS)
		guilty = find_guilty_of_abort(pf, guilty);
	if (guilty && vgpu_vf_is_in_service(&pf->vfs[guilty]))
		vgpu_vf_post(&pf->vfs[guilty], VGPU_VF_EVENT_HANG, reason);
}

/* takes over the VF in the engine, if any; the next decision takes out a VF that may not run */
static void adopt_engine(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint32_t active = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_ACTIVE_FUNCTION_ID);
	bool is_running = function_state(active) == GPUIOV_FUNCTION_ACTIVE;
	uint32_t vf = loaded_vf(pf);

	/* the core does not know how the run began, and treats the run as uncontended */
	vgpu_pf_run_pick_set(&scheduler->run, vf, VGPU_RUN_UNCONTENDED,
			     QUANTUM_UNCONTENDED_US * VGPU_NS_PER_US,
			     vf ? vgpu_pf_run_tables_quantum(pf, vf) : 0);
	scheduler->run.is_accounted = !is_running;
	scheduler->run.started_ns = vgpu_pf_timer_now(pf);
	if (vf == 0) {
		vgpu_pf_run_machine_step(pf, RUN_INPUT_FOUND_EMPTY);
		return;
	}
	vgpu_pf_run_machine_step(pf,
				 is_running ? RUN_INPUT_FOUND_RUNNING : RUN_INPUT_FOUND_EXPIRED);
	vgpu_pf_run_engine_wake(pf);
}

/*
 * True if the core may write a command. If a stalled VF is in the engine, the command will fail.
 * The core writes it if the VF is READY or RUNNING, because the failure leads to the reset of the
 * VF. If the VF is in another state, the core instead waits for the FLR of the VF or, at the end of
 * the recovery time, resets the device.
 */
static bool is_engine_usable(struct vgpu_pf *pf)
{
	uint32_t stalled = stalled_vf(pf);

	if (!vgpu_pf_run_switch_is_engine_free(pf))
		return false;
	return !stalled || vgpu_vf_is_in_service(&pf->vfs[stalled]);
}

/*
 * Poll a broken engine. If it is usable again, take over the VF in it, if any. If the engine is not
 * usable after the deadline, request a device reset.
 */
void vgpu_pf_run_engine_recover(struct vgpu_pf *pf)
{
	if (pf->scheduler.state != VGPU_SCHEDULER_BROKEN)
		return;
	if (is_engine_usable(pf))
		adopt_engine(pf);
	else if (!pf->device.is_attached)
		return;
	else if (vgpu_pf_timer_now(pf) < pf->scheduler.recover_deadline_ns)
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_RECOVER, RECOVER_POLL_NS);
	else
		pf->device_reset.is_due = true;
}

/* ---- decisions, start and stop ---- */

/*
 * Return: true if the VF in the engine may not stay there: the VF is not runnable, another VF is in
 * exclusive full access, or the VF runs only in gang slots, and its run is not a slot (its full
 * access has ended).
 */
bool vgpu_pf_run_engine_must_leave(const struct vgpu_pf *pf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	const struct vgpu_vf *vf = &pf->vfs[scheduler->run.vf];

	if (scheduler->run.vf == 0)
		return false;
	if (scheduler->exclusive_vf && scheduler->exclusive_vf != vf->number)
		return true;
	if (scheduler->run.kind != VGPU_RUN_CONTRACT && vgpu_pf_run_gang_is_confined(vf) &&
	    vgpu_pf_run_contract_is_limited(pf, vf->number))
		return true;
	return !vgpu_vf_is_runnable(vf);
}

static void decide_if_due(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	bool is_due;

	if (scheduler->state == VGPU_SCHEDULER_SWITCHING ||
	    scheduler->state == VGPU_SCHEDULER_BROKEN)
		return;
	is_due = scheduler->state == VGPU_SCHEDULER_RUNNING
			 ? scheduler->preemption != VGPU_PREEMPT_NONE ||
				   vgpu_pf_run_engine_must_leave(pf)
			 : scheduler->is_decision_due || vgpu_pf_run_engine_must_leave(pf);
	if (is_due)
		vgpu_pf_run_decide_now(pf);
}

/* Withdraw VFs that may no longer use the engine from the competition, and account for runs that
 * have ended. */
void vgpu_pf_run_engine_poll(struct vgpu_pf *pf)
{
	if (pf->scheduler.state == VGPU_SCHEDULER_OFF)
		return;
	vgpu_pf_run_share_withdraw(pf);
	handle_ended_runs(pf);
}

/* If a decision is due, choose the next run and begin it. Then set the contract timer. */
void vgpu_pf_run_engine_decide(struct vgpu_pf *pf)
{
	if (pf->scheduler.state == VGPU_SCHEDULER_OFF)
		return;
	decide_if_due(pf);
	if (pf->device.is_attached)
		vgpu_pf_run_contract_arm(pf);
}

/*
 * Begin to schedule. The caller must have set the states of the VFs. The scheduler takes over a VF
 * that is already in the engine, such as one that an earlier core put there.
 */
void vgpu_pf_run_engine_start(struct vgpu_pf *pf)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	scheduler->cut.vf = 0;
	scheduler->preemption = VGPU_PREEMPT_NONE;
	scheduler->last.vf = 0;
	if (vgpu_pf_run_tables_active(pf)->table.count == 0)
		vgpu_pf_run_tables_fallback(pf, vgpu_pf_run_tables_active(pf));
	pf->table_generation = vgpu_pf_run_tables_active(pf)->table.generation;
	vgpu_pf_run_contract_activate(pf, VGPU_BUCKET_EMPTY);
	vgpu_pf_run_share_activate(pf);
	vgpu_pf_run_pick_start_cycle(pf);
	if (!vgpu_pf_run_switch_is_engine_free(pf)) {
		/* poll until the command of an earlier core has ended */
		vgpu_pf_run_machine_step(pf, RUN_INPUT_ENGINE_BUSY);
		return;
	}
	adopt_engine(pf);
}

/* Stop scheduling, because the device is gone, suspended or reset, or the core shuts down. */
void vgpu_pf_run_engine_stop(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	handle_ended_runs(pf);
	vgpu_pf_run_machine_step(pf, RUN_INPUT_STOP);
	vgpu_for_each_vf(pf, vf)
		vf->service.quantum_us = UINT32_MAX;
}
