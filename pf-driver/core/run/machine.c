// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Run-table scheduler
 *
 * The scheduler cycles through the entries of the run table and puts each VF into the engine (the
 * part of the GPU that VFs use in turn) for its quantum; decide.c says when the scheduler deviates
 * from the table. A client such as vgpud plans the table, which stays in force even if the client
 * has ended. This file has the state machine:
 *
 *   OFF       --FOUND_EMPTY--> EMPTY, --FOUND_RUNNING--> RUNNING, --FOUND_EXPIRED--> EXPIRED,
 *             --ENGINE_BUSY--> BROKEN
 *   EMPTY     --DECIDED--> SWITCHING
 *   SWITCHING --LOADED--> RUNNING, --UNLOADED--> EMPTY, --FAILED--> BROKEN
 *   RUNNING   --QUANTUM_OVER--> EXPIRED, --RESET_INSIDE--> EMPTY, --DECIDED--> SWITCHING
 *   EXPIRED   --DECIDED--> SWITCHING
 *   BROKEN    --FOUND_EMPTY--> EMPTY, --FOUND_RUNNING--> RUNNING, --FOUND_EXPIRED--> EXPIRED
 *   every state --STOP--> OFF
 *
 * EXPIRED: the VF in the engine is parked (its waves and packets are stopped), because its quantum
 * has ended. BROKEN: a command of a world switch failed, or a command from before the start of the
 * scheduler, such as one of an earlier PF core, is still in execution. The core then polls the
 * engine. If the engine is not usable after RECOVER_MS * params.time_scale, the core resets the
 * device. The inputs FOUND_... come from a read of the engine, when the scheduler starts or when a
 * broken engine is usable again. Only vgpu_pf_run_machine_step() changes the state. engine.c calls
 * this function, decide.c chooses the next VF, and preempt.c decides whether the VF in the engine
 * must leave.
 */
#include "pf-driver/core/run/internal.h"

#define RECOVER_MS 1000u

static void enter_off(struct vgpu_pf *pf)
{
	vgpu_pf_run_switch_abandon(pf);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_RECOVER);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_CONTRACT);
	pf->scheduler.run.vf = 0;
	pf->scheduler.last.vf = 0;
	pf->scheduler.cut.vf = 0;
	pf->scheduler.exclusive_vf = 0;
}

static void enter_empty(struct vgpu_pf *pf)
{
	pf->scheduler.run.vf = 0;
	pf->scheduler.is_idle = false;
	pf->scheduler.is_decision_due = true;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
}

static void enter_switching(struct vgpu_pf *pf)
{
	pf->scheduler.decided_ns = vgpu_pf_timer_now(pf);
	pf->scheduler.preemption = VGPU_PREEMPT_NONE;
	pf->scheduler.work.is_fresh = false;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
}

static void enter_running(struct vgpu_pf *pf)
{
	pf->scheduler.is_idle = false;
	pf->scheduler.is_decision_due = false;
}

/* the core has found a VF in the engine, at the start or after a world switch that failed */
static void enter_found(struct vgpu_pf *pf)
{
	pf->scheduler.is_idle = false;
	pf->scheduler.is_decision_due = true;
}

static void enter_expired(struct vgpu_pf *pf)
{
	pf->scheduler.is_decision_due = true;
}

static void enter_broken(struct vgpu_pf *pf)
{
	pf->scheduler.run.vf = 0;
	pf->scheduler.is_vf_unknown = false;
	pf->scheduler.recover_deadline_ns =
		vgpu_pf_timer_now(pf) + vgpu_pf_timer_scaled_ns(pf, RECOVER_MS);
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SLICE);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_RECOVER, RECOVER_POLL_NS);
}

/* a command from before the start is in execution, so any VF may be in the engine */
static void enter_busy(struct vgpu_pf *pf)
{
	enter_broken(pf);
	pf->scheduler.is_vf_unknown = true;
}

#define ROW(from, input, to, enter)                                                                \
	[VGPU_SCHEDULER_##from][RUN_INPUT_##input] = {VGPU_SCHEDULER_##to, enter}

static const struct vgpu_run_cell cells[VGPU_SCHEDULER_STATES][RUN_INPUTS] = {
	ROW(OFF, FOUND_EMPTY, EMPTY, enter_empty),
	ROW(OFF, FOUND_RUNNING, RUNNING, enter_found),
	ROW(OFF, FOUND_EXPIRED, EXPIRED, enter_found),
	ROW(OFF, ENGINE_BUSY, BROKEN, enter_busy),
	ROW(EMPTY, DECIDED, SWITCHING, enter_switching),
	ROW(SWITCHING, LOADED, RUNNING, enter_running),
	ROW(SWITCHING, UNLOADED, EMPTY, enter_empty),
	ROW(SWITCHING, FAILED, BROKEN, enter_broken),
	ROW(RUNNING, QUANTUM_OVER, EXPIRED, enter_expired),
	ROW(RUNNING, RESET_INSIDE, EMPTY, enter_empty),
	ROW(RUNNING, DECIDED, SWITCHING, enter_switching),
	ROW(EXPIRED, DECIDED, SWITCHING, enter_switching),
	ROW(BROKEN, FOUND_EMPTY, EMPTY, enter_empty),
	ROW(BROKEN, FOUND_RUNNING, RUNNING, enter_found),
	ROW(BROKEN, FOUND_EXPIRED, EXPIRED, enter_found),
	ROW(OFF, STOP, OFF, enter_off),
	ROW(EMPTY, STOP, OFF, enter_off),
	ROW(SWITCHING, STOP, OFF, enter_off),
	ROW(RUNNING, STOP, OFF, enter_off),
	ROW(EXPIRED, STOP, OFF, enter_off),
	ROW(BROKEN, STOP, OFF, enter_off),
};

static const char *const state_names[VGPU_SCHEDULER_STATES] = {"OFF",	  "EMPTY",   "SWITCHING",
							       "RUNNING", "EXPIRED", "BROKEN"};

static const char *const input_names[RUN_INPUTS] = {
	"FOUND_EMPTY", "FOUND_RUNNING", "FOUND_EXPIRED", "ENGINE_BUSY",	 "DECIDED", "LOADED",
	"UNLOADED",    "FAILED",	"QUANTUM_OVER",	 "RESET_INSIDE", "STOP",
};

/* Find the cell of a state and an input. Return: NULL if the input is impossible in this state. */
const struct vgpu_run_cell *vgpu_pf_run_machine_cell(uint32_t state, uint32_t input)
{
	const struct vgpu_run_cell *cell = &cells[state][input];

	return cell->enter ? cell : NULL;
}

/* Get the name of a state, as in the diagram. Return: the name; "?" if there is no such state. */
const char *vgpu_pf_run_machine_state_name(uint32_t state)
{
	return state < VGPU_SCHEDULER_STATES ? state_names[state] : "?";
}

/* Get the name of an input. Return: the name; "?" if there is no such input. */
const char *vgpu_pf_run_machine_input_name(uint32_t input)
{
	return input < RUN_INPUTS ? input_names[input] : "?";
}

/*
 * Apply an input. No other function changes the state. An input for which the table has no cell is
 * a bug of the core: the core counts and logs the input, and keeps the state.
 */
void vgpu_pf_run_machine_step(struct vgpu_pf *pf, enum vgpu_run_input input)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	const struct vgpu_run_cell *cell = vgpu_pf_run_machine_cell(scheduler->state, input);

	if (cell) {
		scheduler->state = cell->to;
		cell->enter(pf);
		return;
	}
	scheduler->mismatches++;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "run table: MISMATCH: %s is impossible in %s",
			 vgpu_pf_run_machine_input_name(input),
			 vgpu_pf_run_machine_state_name(scheduler->state));
}
