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
 *              |      QUARANTINED MISMATCH                           (QUARANTINED: with
 *              |                                                     CLEAR_QUARANTINE)
 *              |      PROVISIONED READY --- PAUSE ---> PAUSED
 *              |      PAUSED --- RESUME ---> READY, --- RESUME_FRESH ---> PROVISIONED
 *              |      PAUSED --- DRIVER_GONE ---> PAUSED (a later RESUME is a fresh one)
 *              |      PROVISIONED READY PAUSED --- STOP ---> STOPPED
 *              |      PROVISIONED READY PAUSED STOPPED RESETTING --- QUARANTINE ---> QUARANTINED
 *              |
 *              +----- SCRUBBING <--- RELEASE --- every state but ABSENT, RUNNING, SCRUBBING
 *
 *   DEVICE_LOST: PROVISIONED READY RUNNING RESETTING MISMATCH ---> STOPPED; others stay
 *   DEVICE_BACK: STOPPED ---> PROVISIONED, if it was stopped by DEVICE_LOST
 *
 * RUNNING means: in the engine. Every event but UNLOADED, HANG and DEVICE_LOST that reaches a VF
 * which the run table holds (in the engine, or on its way into or out of it) is kept. At the end of
 * every call into the core, vgpu_pf_control_settle() looks at what the run table did: LOADED, HANG
 * and UNLOADED happen there, and what is kept for a VF that the run table no longer holds. Of
 * several events the weightiest happens, and then what an operator asked for, if the state still
 * allows it. A cell that is not in the table leads to MISMATCH with a dump; requests of operators
 * are checked against the table first and refused.
 */
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

static void enter_unchanged(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)pf;
	(void)vf;
	(void)reason;
}

static void enter_absent(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)reason;
	vgpu_pf_provision_forget(pf, vf);
}

static void enter_provisioned(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)reason;
	vgpu_pf_full_access_end(pf, vf);
	vf->control.driver_loaded = false;
	vf->control.lost = false;
}

static void enter_granted(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)pf;
	(void)reason;
	vf->control.driver_loaded = true;
}

static void enter_paused(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vf->guard.paused = reason == VGPU_PF_REASON_GUARD;
	vgpu_pf_full_access_suspend(pf, vf);
}

static void enter_driver_gone(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)reason;
	vgpu_pf_full_access_end(pf, vf);
	vf->control.driver_loaded = false;
}

static void enter_resumed(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)reason;
	vf->guard.paused = false;
	vgpu_pf_full_access_resume(pf, vf);
	vgpu_pf_mailbox_resume(pf, vf);
}

static void enter_stopped(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_reset_cancel(vf);
	vf->guard.paused = false;
	vf->control.driver_loaded = false;
	vf->control.lost = false;
	if (reason != VGPU_PF_REASON_NONE)
		vf->last_error = reason;
}

static void enter_lost(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	enter_stopped(pf, vf, reason);
	vgpu_pf_mailbox_lost(pf, vf);
	vf->control.lost = true;
}

static void enter_lost_stays(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_mailbox_lost(pf, vf);
	vf->control.driver_loaded = false;
	vf->last_error = reason;
}

static void enter_resetting(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_vf_state_forget(pf, vf);
	vf->guard.paused = false;
	vf->control.lost = false;
	vgpu_pf_reset_begin(pf, vf, reason);
}

static void enter_cleared(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vgpu_pf_guard_forgive(pf, vf);
	enter_resetting(pf, vf, reason);
}

static void enter_quarantined(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	enter_stopped(pf, vf, reason);
	vgpu_pf_mailbox_refuse(pf, vf);
}

static void enter_scrubbing(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	(void)reason;
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_reset_cancel(vf);
	vgpu_pf_mailbox_forget(vf);
	vf->guard.paused = false;
	vf->control.driver_loaded = false;
	vf->control.lost = false;
	vgpu_pf_scrub_begin(pf, vf);
}

#define ROW(from, event, to, enter)                                                                \
	{                                                                                          \
		VGPU_PF_VF_##from, VGPU_VF_EVENT_##event, VGPU_PF_VF_##to, enter                   \
	}

static const struct vgpu_control_row control_table[] = {
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
	ROW(READY, HANG, RESETTING, enter_resetting),
	ROW(READY, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(READY, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(READY, DEVICE_LOST, STOPPED, enter_lost),

	ROW(RUNNING, GRANT, RUNNING, enter_granted),
	ROW(RUNNING, UNLOADED, READY, enter_unchanged),
	ROW(RUNNING, HANG, RESETTING, enter_resetting),
	ROW(RUNNING, DEVICE_LOST, STOPPED, enter_lost),

	ROW(PAUSED, RESUME, READY, enter_resumed),
	ROW(PAUSED, RESUME_FRESH, PROVISIONED, enter_resumed),
	ROW(PAUSED, DRIVER_GONE, PAUSED, enter_driver_gone),
	ROW(PAUSED, STOP, STOPPED, enter_stopped),
	ROW(PAUSED, RESET, RESETTING, enter_resetting),
	ROW(PAUSED, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(PAUSED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(PAUSED, DEVICE_LOST, PAUSED, enter_lost_stays),

	ROW(STOPPED, RESET, RESETTING, enter_resetting),
	ROW(STOPPED, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(STOPPED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(STOPPED, DEVICE_LOST, STOPPED, enter_lost_stays),
	ROW(STOPPED, DEVICE_BACK, PROVISIONED, enter_provisioned),

	ROW(RESETTING, RESET, RESETTING, enter_unchanged), /* one reset serves all who asked */
	ROW(RESETTING, RESET_DONE, PROVISIONED, enter_provisioned),
	ROW(RESETTING, STOP, STOPPED, enter_stopped),
	ROW(RESETTING, QUARANTINE, QUARANTINED, enter_quarantined),
	ROW(RESETTING, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(RESETTING, DEVICE_LOST, STOPPED, enter_lost),

	ROW(QUARANTINED, CLEAR_QUARANTINE, RESETTING, enter_cleared),
	ROW(QUARANTINED, RELEASE, SCRUBBING, enter_scrubbing),
	ROW(QUARANTINED, DEVICE_LOST, QUARANTINED, enter_lost_stays),

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
	"NONE",	       "PROVISION",	"GRANT",       "LOADED",       "UNLOADED",
	"DRIVER_GONE", "PAUSE",		"RESUME",      "RESUME_FRESH", "STOP",
	"RESET",       "HANG",		"RESET_DONE",  "QUARANTINE",   "CLEAR_QUARANTINE",
	"RELEASE",     "SCRUB_DURABLE", "DEVICE_LOST", "DEVICE_BACK",
};

/* which gates stand open in a state; the register write gate opens with full access */
static const uint8_t state_has_vram[VGPU_PF_VF_STATES] = {
	[VGPU_PF_VF_PROVISIONED] = 1, [VGPU_PF_VF_READY] = 1,	  [VGPU_PF_VF_RUNNING] = 1,
	[VGPU_PF_VF_PAUSED] = 1,      [VGPU_PF_VF_RESETTING] = 1,
};
static const uint8_t state_has_doorbells[VGPU_PF_VF_STATES] = {
	[VGPU_PF_VF_READY] = 1,
	[VGPU_PF_VF_RUNNING] = 1,
	[VGPU_PF_VF_PAUSED] = 1,
};

/* when several events wait for the VF to leave the engine, the weightiest is kept */
static const uint8_t event_weights[VGPU_VF_EVENTS] = {
	[VGPU_VF_EVENT_PAUSE] = 1, [VGPU_VF_EVENT_DRIVER_GONE] = 2, [VGPU_VF_EVENT_RESET] = 3,
	[VGPU_VF_EVENT_STOP] = 4,  [VGPU_VF_EVENT_QUARANTINE] = 5,  [VGPU_VF_EVENT_RELEASE] = 6,
};

static const struct vgpu_control_row *find_row(uint32_t state, uint32_t event)
{
	for (uint32_t i = 0; i < VGPU_COUNT_OF(control_table); i++)
		if (control_table[i].from == state && control_table[i].event == event)
			return &control_table[i];
	return NULL;
}

static void trace(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t event, uint32_t to)
{
	struct vgpu_trace_line *line = &pf->trace[pf->trace_used++ % VGPU_PF_TRACE];

	line->time_ns = vgpu_pf_timer_now(pf);
	line->vf = (uint8_t)vf->number;
	line->from = (uint8_t)vf->state;
	line->event = (uint8_t)event;
	line->to = (uint8_t)to;
	if (event == VGPU_VF_EVENT_LOADED || event == VGPU_VF_EVENT_UNLOADED)
		return; /* the event ring's RUN entries tell */
	vgpu_pf_text_log(pf, VGPU_OS_LOG_DEBUG, "VF%u: %s --%s--> %s", vf->number,
			 state_names[vf->state], event_names[event], state_names[to]);
	if (to != vf->state)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_STATE, vf->number, to, vf->state);
	vgpu_pf_journal_mark(pf);
}

/* an impossible transition: say what led to it */
static void tell_mismatch(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t event)
{
	uint32_t first = pf->trace_used > 8 ? pf->trace_used - 8 : 0;

	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: MISMATCH: %s is impossible in %s",
			 vf->number, event_names[event], state_names[vf->state]);
	for (uint32_t i = first; i < pf->trace_used; i++) {
		const struct vgpu_trace_line *line = &pf->trace[i % VGPU_PF_TRACE];

		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "  before: VF%u %s --%s--> %s", line->vf,
				 state_names[line->from], event_names[line->event],
				 state_names[line->to]);
	}
}

static void enter_mismatch(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event)
{
	tell_mismatch(pf, vf, event);
	trace(pf, vf, event, VGPU_PF_VF_MISMATCH);
	vf->state = VGPU_PF_VF_MISMATCH;
	vf->control.mismatches++;
	vf->control.driver_loaded = false;
	vgpu_pf_control_set_gates(pf, vf);
}

/* the one place where vf->state changes */
static void step(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
		 enum vgpu_pf_reason reason)
{
	const struct vgpu_control_row *row = find_row(vf->state, event);
	bool leaves_pause;

	if (!row) {
		enter_mismatch(pf, vf, event);
		return;
	}
	leaves_pause = vf->state == VGPU_PF_VF_PAUSED && row->to != VGPU_PF_VF_PAUSED;
	trace(pf, vf, event, row->to);
	vf->state = row->to;
	if (leaves_pause)
		vgpu_pf_vf_state_left_pause(pf, vf);
	row->enter(pf, vf, reason);
	vgpu_pf_control_set_gates(pf, vf);
	/* its work may have waited for this */
	if (vf->state == VGPU_PF_VF_READY && event != VGPU_VF_EVENT_UNLOADED)
		vgpu_pf_run_engine_wake(pf);
}

/**
 * vgpu_pf_control_table() - the transition table
 * @rows: receives its length
 */
const struct vgpu_control_row *vgpu_pf_control_table(uint32_t *rows)
{
	*rows = VGPU_COUNT_OF(control_table);
	return control_table;
}

/**
 * vgpu_pf_control_state_name() - name of a state as the documents have it
 * @state: enum vgpu_pf_vf_state
 */
const char *vgpu_pf_control_state_name(uint32_t state)
{
	return state < VGPU_PF_VF_STATES ? state_names[state] : "?";
}

/**
 * vgpu_pf_control_event_name() - name of an event as the documents have it
 * @event: enum vgpu_vf_event
 */
const char *vgpu_pf_control_event_name(uint32_t event)
{
	return event < VGPU_VF_EVENTS ? event_names[event] : "?";
}

/**
 * vgpu_pf_control_allows() - is there a cell for this event?
 * @vf: the VF
 * @event: the event; for a VF in the engine, the answer for the state it leaves the engine to
 */
bool vgpu_pf_control_allows(const struct vgpu_vf *vf, enum vgpu_vf_event event)
{
	uint32_t state = vf->state == VGPU_PF_VF_RUNNING ? VGPU_PF_VF_READY : vf->state;

	return find_row(vf->state, event) || find_row(state, event);
}

/**
 * vgpu_pf_control_set_gates() - open and shut the VF's gates as its state and access want
 * @pf: the PF
 * @vf: whose
 */
int vgpu_pf_control_set_gates(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	bool is_open = vf->access.granted && state_has_doorbells[vf->state];
	uint32_t gates = HW_PREP(VGPU_GATES, FB_EN, state_has_vram[vf->state]) |
			 HW_PREP(VGPU_GATES, DOORBELL_EN, state_has_doorbells[vf->state]) |
			 HW_PREP(VGPU_GATES, REGWR_EN, is_open);
	int error;

	if (gates == vf->control.gates || !pf->device.is_attached)
		return 0;
	error = vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_GATES, gates);
	if (!error)
		vf->control.gates = gates;
	return error;
}

/* the engine holds the VF, or has let go of it only now: vgpu_pf_control_settle() comes later */
static bool is_in_engine(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_run_engine_holds(pf, vf) || vf->state == VGPU_PF_VF_RUNNING ||
	       vf->control.pending != VGPU_VF_EVENT_NONE;
}

/* a pause that an operator wants too is not the guard's to end */
static bool is_operators_pause(const struct vgpu_vf *vf, enum vgpu_vf_event event,
			       enum vgpu_pf_reason reason)
{
	return event == VGPU_VF_EVENT_PAUSE && vf->control.pending == VGPU_VF_EVENT_PAUSE &&
	       reason == VGPU_PF_REASON_OPERATOR;
}

static void keep_back(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
		      enum vgpu_pf_reason reason)
{
	if (event_weights[event] > event_weights[vf->control.pending] ||
	    is_operators_pause(vf, event, reason)) {
		vf->control.pending = event;
		vf->control.pending_reason = reason;
	}
	vgpu_pf_run_engine_evict(pf);
}

/**
 * vgpu_pf_control_post() - something happened to a VF
 * @pf: the PF
 * @vf: whom
 * @event: what
 * @reason: why, where a reset or a stop follows
 *
 * Return: 0, or -EINPROGRESS if it takes effect when the VF has left the engine.
 */
int vgpu_pf_control_post(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			 enum vgpu_pf_reason reason)
{
	/* what has a weight has no cell in RUNNING */
	bool is_kept = event_weights[event] && is_in_engine(pf, vf);

	if (is_kept && vgpu_pf_control_allows(vf, event)) {
		keep_back(pf, vf, event, reason);
		return -EINPROGRESS;
	}
	step(pf, vf, event, reason);
	return 0;
}

static int refuse(struct vgpu_pf *pf, const struct vgpu_vf *vf, enum vgpu_vf_event event)
{
	return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: %s is not possible while %s", vf->number,
				 event_names[event], state_names[vf->state]);
}

/**
 * vgpu_pf_control_request() - an operator asks for an event
 * @pf: the PF
 * @vf: whom
 * @event: what
 * @token: of the request
 *
 * Return: 0, -EINPROGRESS, -EINVAL if the state does not allow it (with the reply, if something
 * weightier came first), -EBUSY if another is under way.
 */
int vgpu_pf_control_request(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			    uint64_t token)
{
	int error;

	if (!vgpu_pf_control_allows(vf, event))
		return refuse(pf, vf, event);
	if (vf->control.token)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u: %s is still under way", vf->number,
					 event_names[vf->control.asked]);
	error = vgpu_pf_control_post(pf, vf, event, VGPU_PF_REASON_OPERATOR);
	if (error == -EINPROGRESS) {
		vf->control.asked = event;
		vf->control.token = token;
	}
	return error;
}

/* false: not any more, a reset or a loss has overtaken it */
static bool carry_out(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
		      enum vgpu_pf_reason reason)
{
	if (!vgpu_pf_control_allows(vf, event))
		return false;
	step(pf, vf, event, reason);
	return true;
}

/* as it would have been refused, had it come a moment later */
static void finish_request(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t token,
			   enum vgpu_vf_event asked, bool is_done)
{
	int error = is_done || token == 0 ? 0 : refuse(pf, vf, asked);

	vgpu_pf_reply_add(pf, token, error, error ? pf->message : "");
}

/* the VF is not in the engine: what was kept back happens now */
static void carry_out_kept(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	enum vgpu_vf_event event = vf->control.pending;
	enum vgpu_vf_event asked = vf->control.asked;
	uint64_t token = vf->control.token;
	bool is_done;

	if (event == VGPU_VF_EVENT_NONE)
		return;
	vf->control.pending = VGPU_VF_EVENT_NONE;
	vf->control.asked = VGPU_VF_EVENT_NONE;
	vf->control.token = 0;
	is_done = carry_out(pf, vf, event, vf->control.pending_reason);
	/* what was weightier came first */
	if (asked != VGPU_VF_EVENT_NONE && asked != event)
		is_done = carry_out(pf, vf, asked, VGPU_PF_REASON_OPERATOR);
	finish_request(pf, vf, token, asked, is_done);
	vgpu_pf_mailbox_resume(pf, vf);
}

static void carry_out_hang(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	enum vgpu_pf_reason reason = vf->control.hang;

	vf->control.hang = VGPU_PF_REASON_NONE;
	if (reason == VGPU_PF_REASON_NONE || !vgpu_vf_is_in_service(vf))
		return;
	step(pf, vf, VGPU_VF_EVENT_HANG, reason);
	vgpu_pf_guard_count(pf, vf, VGPU_GUARD_FLR);
}

/**
 * vgpu_pf_control_settle() - follow what the run table did, carry out what waited for it
 * @pf: the PF
 *
 * Only what the run table holds now counts, so that no way into the engine or out of it can be
 * forgotten. One pass is enough: nothing that happens here moves a VF into the engine or out of it.
 */
void vgpu_pf_control_settle(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		carry_out_hang(pf, vf);
		if (vf->state == VGPU_PF_VF_READY && vgpu_pf_run_engine_is_loaded(pf, vf))
			step(pf, vf, VGPU_VF_EVENT_LOADED, VGPU_PF_REASON_NONE);
		if (vgpu_pf_run_engine_holds(pf, vf))
			continue;
		if (vf->state == VGPU_PF_VF_RUNNING)
			step(pf, vf, VGPU_VF_EVENT_UNLOADED, VGPU_PF_REASON_NONE);
		carry_out_kept(pf, vf);
	}
}

/**
 * vgpu_pf_control_begin() - a VF number gets a new life, with nothing of the one before
 * @pf: the PF
 * @vf: ABSENT, about to be provisioned
 *
 * What is found pending is a bug of the core. It is reported, counted as a mismatch and dropped:
 * the next owner must not pay for it.
 */
void vgpu_pf_control_begin(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_vf_control fresh = {.gates = vf->control.gates,
					.mismatches = vf->control.mismatches};

	if (vf->control.pending != VGPU_VF_EVENT_NONE || vf->control.token) {
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR,
				 "VF%u: %s was left over from the life before; dropped", vf->number,
				 event_names[vf->control.pending]);
		vgpu_pf_reply_add(pf, vf->control.token, -ECANCELED,
				  "the VF has been provisioned anew");
		fresh.mismatches++;
	}
	vf->control = fresh;
}

/**
 * vgpu_pf_control_end_request() - what an operator waits for does not come any more
 * @pf: the PF
 * @vf: whose
 * @error: 0 or negative errno
 */
void vgpu_pf_control_end_request(struct vgpu_pf *pf, struct vgpu_vf *vf, int error)
{
	uint64_t token = vf->control.token;

	vf->control.pending = VGPU_VF_EVENT_NONE;
	vf->control.asked = VGPU_VF_EVENT_NONE;
	vf->control.token = 0;
	vgpu_pf_reply_add(pf, token, error, "the device was lost, reset or let go");
}

/**
 * vgpu_pf_control_lose() - a VF has lost its state with the device
 * @pf: the PF
 * @vf: whom
 */
void vgpu_pf_control_lose(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	/* a release that was waiting for the engine is not forgotten */
	bool is_released = vf->control.pending == VGPU_VF_EVENT_RELEASE;

	vgpu_pf_control_end_request(pf, vf,
				    vf->control.asked == VGPU_VF_EVENT_RELEASE ? 0 : -ENODEV);
	vf->control.hang = VGPU_PF_REASON_NONE;
	for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
		if (id != VGPU_VF_TIMER_GUARD && id != VGPU_VF_TIMER_TELL)
			vgpu_pf_timer_clear_vf(vf, id);
	if (vf->state == VGPU_PF_VF_ABSENT)
		return;
	vf->attached = false;
	vf->control.gates = UINT32_MAX;
	if (vf->state != VGPU_PF_VF_SCRUBBING)
		vf->last_error = VGPU_PF_REASON_DEVICE_LOST;
	vgpu_pf_control_post(pf, vf, VGPU_VF_EVENT_DEVICE_LOST, VGPU_PF_REASON_DEVICE_LOST);
	if (is_released)
		vgpu_pf_control_post(pf, vf, VGPU_VF_EVENT_RELEASE, VGPU_PF_REASON_OPERATOR);
}
