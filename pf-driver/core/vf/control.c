// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Life cycle of a VF
 *
 *                        PROVISION
 *            ABSENT ------------------> PROVISIONED <----------------+
 *              ^                         |        ^                  |
 *              |                   GRANT |        | DRIVER_GONE      |
 *              |                         v        |                  |
 *              |                        READY ----+                  |
 *              |                        |   ^                        |
 *              |                 LOADED |   | UNLOADED               | RESET_DONE
 *              |                        v   |                        |
 *              |                       RUNNING --- HANG ---+         |
 *              |                                           |         |
 *   SCRUB_     |      PROVISIONED READY                    v         |
 *   DURABLE    |      PAUSED STOPPED    --- RESET ---> RESETTING ----+
 *              |      QUARANTINED MISMATCH                           (QUARANTINED: by
 *              |                                                     CLEAR_QUARANTINE)
 *              |      PROVISIONED READY --- PAUSE ---> PAUSED
 *              |      PAUSED --- RESUME ---> READY, --- RESUME_FRESH ---> PROVISIONED
 *              |      PAUSED --- DRIVER_GONE ---> PAUSED (RESUME_FRESH then ends the pause)
 *              |      PROVISIONED READY PAUSED RESETTING --- STOP ---> STOPPED
 *              |      PROVISIONED READY PAUSED STOPPED RESETTING --- QUARANTINE ---> QUARANTINED
 *              |
 *              +----- SCRUBBING <--- RELEASE --- every state but ABSENT, RUNNING, SCRUBBING
 *
 *   DEVICE_LOST: PROVISIONED READY RUNNING RESETTING MISMATCH ---> STOPPED; others keep their state
 *   DEVICE_BACK: STOPPED ---> PROVISIONED, if DEVICE_LOST stopped the VF
 *
 * RUNNING: the VF is in the engine. HANG leads from READY to RESETTING, too, because a VF can hang
 * during the world switch that loads it. The diagram leaves out most events that keep the state.
 * vgpu_vf_post() puts an event into the inbox of a VF; inbox.c takes the event out and calls
 * vgpu_pf_control_step(), which carries the event out.
 *
 * An event is impossible if the table cells[] has no cell for it in the VF's state. An impossible
 * event leads to MISMATCH, and the core logs the event and the last transitions. There are two
 * exceptions: inbox.c drops an impossible event if an earlier event may have changed the state, and
 * an operator who requests an impossible event gets an error.
 */
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

static void enter_unchanged(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
}

static void enter_absent(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_provision_free(pf, vf);
}

static void enter_provisioned(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vf->control.driver_loaded = false;
	vf->control.is_stopped_by_loss = false;
}

static void enter_granted(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vf->control.driver_loaded = true;
	vgpu_pf_full_access_begin(pf, vf);
}

static void enter_paused(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vf->guard.paused = reason == VGPU_PF_REASON_GUARD;
	vgpu_pf_full_access_suspend(pf, vf);
}

static void enter_driver_gone(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vf->control.driver_loaded = false;
}

static void enter_resumed(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vf->guard.paused = false;
	vgpu_pf_full_access_resume(pf, vf);
}

static void enter_stopped(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_reset_cancel(pf, vf);
	vf->guard.paused = false;
	vf->control.driver_loaded = false;
	vf->control.is_stopped_by_loss = false;
	if (reason != VGPU_PF_REASON_NONE)
		vf->last_error = reason;
}

static void enter_lost(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_mailbox_device_lost(pf, vf);
	enter_stopped(pf, vf, reason);
	vf->control.is_stopped_by_loss = true;
}

static void enter_lost_unchanged(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_mailbox_device_lost(pf, vf);
	vf->control.driver_loaded = false;
	vf->last_error = reason;
}

static void enter_resetting(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_stream_forget(pf, vf);
	vf->guard.paused = false;
	vf->control.is_stopped_by_loss = false;
	vgpu_pf_reset_begin(pf, vf, reason);
}

static void enter_hung(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	enter_resetting(pf, vf, reason);
	vgpu_pf_guard_count(pf, vf, VGPU_GUARD_FLR);
}

static void enter_reset_done(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	enter_provisioned(pf, vf, reason);
	vgpu_pf_reset_end(pf, vf);
}

static void enter_cleared(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_guard_clear(pf, vf);
	enter_resetting(pf, vf, reason);
}

static void enter_quarantined(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_mailbox_refuse(pf, vf);
	enter_stopped(pf, vf, reason);
}

static void enter_scrubbing(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_mailbox_refuse(pf, vf);
	vgpu_pf_reset_cancel(pf, vf);
	vf->guard.paused = false;
	vf->control.driver_loaded = false;
	vf->control.is_stopped_by_loss = false;
	vgpu_pf_scrub_begin(pf, vf);
}

#define ROW(from, event, to, enter)                                                                \
	[VGPU_PF_VF_##from][VGPU_VF_EVENT_##event] = {VGPU_PF_VF_##to, enter}

static const struct vgpu_control_cell cells[VGPU_PF_VF_STATES][VGPU_VF_EVENTS] = {
	ROW(ABSENT, PROVISION, PROVISIONED, enter_provisioned),
	ROW(ABSENT, DEVICE_LOST, ABSENT, enter_unchanged),

	ROW(PROVISIONED, GRANT, READY, enter_granted),
	ROW(PROVISIONED, DRIVER_GONE, PROVISIONED, enter_provisioned),
	ROW(PROVISIONED, PAUSE, PAUSED, enter_paused),
	ROW(PROVISIONED, STOP, STOPPED, enter_stopped),
	ROW(PROVISIONED, RESET, RESETTING, enter_resetting),
	ROW(PROVISIONED, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(PROVISIONED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(PROVISIONED, DEVICE_LOST, STOPPED, enter_lost),

	ROW(READY, GRANT, READY, enter_granted),
	ROW(READY, LOADED, RUNNING, enter_unchanged),
	ROW(READY, DRIVER_GONE, PROVISIONED, enter_provisioned),
	ROW(READY, PAUSE, PAUSED, enter_paused),
	ROW(READY, STOP, STOPPED, enter_stopped),
	ROW(READY, RESET, RESETTING, enter_resetting),
	ROW(READY, HANG, RESETTING, enter_hung),
	ROW(READY, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(READY, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(READY, DEVICE_LOST, STOPPED, enter_lost),

	ROW(RUNNING, GRANT, RUNNING, enter_granted),
	ROW(RUNNING, UNLOADED, READY, enter_unchanged),
	ROW(RUNNING, HANG, RESETTING, enter_hung),
	ROW(RUNNING, DEVICE_LOST, STOPPED, enter_lost),

	ROW(PAUSED, RESUME, READY, enter_resumed),
	ROW(PAUSED, RESUME_FRESH, PROVISIONED, enter_resumed),
	ROW(PAUSED, DRIVER_GONE, PAUSED, enter_driver_gone),
	ROW(PAUSED, STOP, STOPPED, enter_stopped),
	ROW(PAUSED, RESET, RESETTING, enter_resetting),
	ROW(PAUSED, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(PAUSED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(PAUSED, DEVICE_LOST, PAUSED, enter_lost_unchanged),

	ROW(STOPPED, RESET, RESETTING, enter_resetting),
	ROW(STOPPED, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(STOPPED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(STOPPED, DEVICE_LOST, STOPPED, enter_lost_unchanged),
	ROW(STOPPED, DEVICE_BACK, PROVISIONED, enter_provisioned),

	ROW(RESETTING, RESET, RESETTING, enter_unchanged), /* one reset serves all requests */
	ROW(RESETTING, RESET_DONE, PROVISIONED, enter_reset_done),
	ROW(RESETTING, STOP, STOPPED, enter_stopped),
	ROW(RESETTING, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(RESETTING, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(RESETTING, DEVICE_LOST, STOPPED, enter_lost),

	ROW(QUARANTINED, CLEAR_QUARANTINE, RESETTING, enter_cleared),
	ROW(QUARANTINED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(QUARANTINED, DEVICE_LOST, QUARANTINED, enter_lost_unchanged),

	ROW(SCRUBBING, SCRUB_DURABLE, ABSENT, enter_absent),
	ROW(SCRUBBING, DEVICE_LOST, SCRUBBING, enter_unchanged),

	ROW(MISMATCH, RESET, RESETTING, enter_resetting),
	ROW(MISMATCH, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(MISMATCH, DEVICE_LOST, STOPPED, enter_lost),
};

static const char *const state_names[VGPU_PF_VF_STATES] = {
	"ABSENT",  "PROVISIONED", "READY",	 "RUNNING",   "PAUSED",
	"STOPPED", "RESETTING",	  "QUARANTINED", "SCRUBBING", "MISMATCH",
};

static const char *const event_names[VGPU_VF_EVENTS] = {
#define VF_EVENT(name) #name,
#include "pf-driver/core/base/vf_events.def"
#undef VF_EVENT
};

/* the states in which the VRAM gate is open */
static const uint8_t state_has_vram[VGPU_PF_VF_STATES] = {
	[VGPU_PF_VF_PROVISIONED] = 1, [VGPU_PF_VF_READY] = 1,	  [VGPU_PF_VF_RUNNING] = 1,
	[VGPU_PF_VF_PAUSED] = 1,      [VGPU_PF_VF_RESETTING] = 1,
};
/* the states in which the doorbell gate and, in full access, the register write gate are open */
static const uint8_t state_may_use_engine[VGPU_PF_VF_STATES] = {
	[VGPU_PF_VF_READY] = 1,
	[VGPU_PF_VF_RUNNING] = 1,
	[VGPU_PF_VF_PAUSED] = 1,
};

static void trace(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t event, uint32_t to)
{
	struct vgpu_trace_line *line = &pf->trace.lines[pf->trace.total++ % VGPU_PF_TRACE];

	line->time_ns = vgpu_pf_timer_now(pf);
	line->vf = (uint8_t)vf->number;
	line->from = (uint8_t)vf->state;
	line->event = (uint8_t)event;
	line->to = (uint8_t)to;
	/* no report, no checkpoint: RUN events report runs, the checkpoint has READY for RUNNING */
	if (event == VGPU_VF_EVENT_LOADED || event == VGPU_VF_EVENT_UNLOADED)
		return;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_DEBUG, "VF%u: %s --%s--> %s", vf->number,
			 state_names[vf->state], event_names[event], state_names[to]);
	if (to != vf->state)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_STATE, vf->number, to, vf->state);
	vgpu_pf_checkpoint_mark(pf);
}

/* logs an impossible event, and then up to eight of the last transitions of all VFs */
static void log_mismatch(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t event)
{
	uint32_t first = pf->trace.total > 8 ? pf->trace.total - 8 : 0;

	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: MISMATCH: %s is impossible in %s",
			 vf->number, event_names[event], state_names[vf->state]);
	for (uint32_t i = first; i < pf->trace.total; i++) {
		const struct vgpu_trace_line *line = &pf->trace.lines[i % VGPU_PF_TRACE];

		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "  before: VF%u %s --%s--> %s", line->vf,
				 state_names[line->from], event_names[line->event],
				 state_names[line->to]);
	}
}

static void enter_mismatch(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event)
{
	log_mismatch(pf, vf, event);
	trace(pf, vf, event, VGPU_PF_VF_MISMATCH);
	vf->state = VGPU_PF_VF_MISMATCH;
	vf->control.mismatches++;
	vf->control.driver_loaded = false;
	vf->control.is_stopped_by_loss = false;
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_mailbox_refuse(pf, vf);
	vgpu_pf_reset_cancel(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
}

/*
 * Carry out an event: move the VF to the new state of the table's cell, call the enter function of
 * the cell, and set the gates. An impossible event leads to MISMATCH.
 */
void vgpu_pf_control_step(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			  enum vgpu_pf_reason reason)
{
	const struct vgpu_control_cell *cell = vgpu_pf_control_cell(vf->state, event);
	bool leaves_pause;

	if (!cell) {
		enter_mismatch(pf, vf, event);
		return;
	}
	leaves_pause = vf->state == VGPU_PF_VF_PAUSED && cell->to != VGPU_PF_VF_PAUSED;
	trace(pf, vf, event, cell->to);
	vf->state = cell->to;
	if (leaves_pause)
		vgpu_pf_stream_break(pf, vf);
	cell->enter(pf, vf, reason);
	vgpu_pf_control_set_gates(pf, vf);
	/* the VF may have work already; after UNLOADED, the scheduler checks for work itself */
	if (vf->state == VGPU_PF_VF_READY && event != VGPU_VF_EVENT_UNLOADED)
		vgpu_pf_run_engine_wake(pf);
}

/* Find the cell of a state and an event. Return: NULL if the event is impossible. */
const struct vgpu_control_cell *vgpu_pf_control_cell(uint32_t state, uint32_t event)
{
	const struct vgpu_control_cell *cell = &cells[state][event];

	return cell->enter ? cell : NULL;
}

const char *vgpu_pf_control_state_name(uint32_t state)
{
	return state < VGPU_PF_VF_STATES ? state_names[state] : "?";
}

const char *vgpu_pf_control_event_name(uint32_t event)
{
	return event < VGPU_VF_EVENTS ? event_names[event] : "?";
}

/* True if the event is possible now or, for a RUNNING VF, when the VF has left the engine. */
bool vgpu_pf_control_allows(const struct vgpu_vf *vf, enum vgpu_vf_event event)
{
	uint32_t state = vf->state == VGPU_PF_VF_RUNNING ? VGPU_PF_VF_READY : vf->state;

	return vgpu_pf_control_cell(vf->state, event) || vgpu_pf_control_cell(state, event);
}

/*
 * Set the VF's gates as its state and full access require. Without a device, do nothing. Return: 0
 * or negative errno.
 */
int vgpu_pf_control_set_gates(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	bool may_write_registers =
		vgpu_pf_full_access_is_open(vf) && state_may_use_engine[vf->state];
	uint32_t gates = HW_PREP(VGPU_GATES, FB_EN, state_has_vram[vf->state]) |
			 HW_PREP(VGPU_GATES, DOORBELL_EN, state_may_use_engine[vf->state]) |
			 HW_PREP(VGPU_GATES, REGWR_EN, may_write_registers);
	int error;

	if (gates == vf->control.gates || !pf->device.is_attached)
		return 0;
	error = vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_GATES, gates);
	if (!error)
		vf->control.gates = gates;
	return error;
}
