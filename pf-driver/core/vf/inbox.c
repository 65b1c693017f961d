// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The inbox holds the events of a VF (vgpu_vf_post()) until this file carries them out, usually at
 * the end of a call into the core. If an operator requests an event, or the device is lost or
 * reset, this file processes the inbox at once, in this order:
 *
 *   1. the events before PAUSE in vf_events.def, the most severe (last) one first, even while the
 *      VF is in the engine
 *   2. once the VF is not in the engine: of PAUSE and the events after it, the most severe one. The
 *      less severe ones are dropped, except an event that an operator requested.
 *   3. the operator's event; if the new state does not allow this event, the request is refused
 *
 * LOADED and UNLOADED are not posted: this file derives them from the state of the engine.
 */
#include "pf-driver/core/vf/parts.h"

/* the events that wait until the VF has left the engine */
#define WAITING_EVENTS (~0u << VGPU_VF_EVENT_PAUSE)

/* returns the event to carry out now; NONE: no event is pending, or all wait for the engine */
static enum vgpu_vf_event next_event(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint32_t events = vf->inbox.events;

	if (events & ~WAITING_EVENTS)
		return vgpu_vf_severest(events & ~WAITING_EVENTS);
	if (vf->state == VGPU_PF_VF_READY && vgpu_pf_run_engine_is_loaded(pf, vf))
		return VGPU_VF_EVENT_LOADED;
	if (vgpu_pf_run_engine_holds(pf, vf))
		return VGPU_VF_EVENT_NONE;
	return vf->state == VGPU_PF_VF_RUNNING ? VGPU_VF_EVENT_UNLOADED : vgpu_vf_severest(events);
}

static int refuse(struct vgpu_pf *pf, const struct vgpu_vf *vf, enum vgpu_vf_event event)
{
	return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: %s is not possible while %s", vf->number,
				 vgpu_pf_control_event_name(event),
				 vgpu_pf_control_state_name(vf->state));
}

static void finish_request(struct vgpu_pf *pf, struct vgpu_vf *vf, int error, const char *message)
{
	vgpu_pf_reply_add(pf, vf->inbox.token, error, message);
	vf->inbox.requested = VGPU_VF_EVENT_NONE;
	vf->inbox.token = 0;
}

/* has_processed: true if an earlier event may have changed the state and made `event` impossible */
static void carry_out(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
		      bool has_processed)
{
	struct vgpu_vf_inbox *inbox = &vf->inbox;
	bool is_possible = vgpu_pf_control_cell(vf->state, event);

	inbox->events &= ~(1u << event);
	/* drop the less severe events, except a requested one; the bit of NONE is never set */
	if (1u << event & WAITING_EVENTS)
		inbox->events &= ~WAITING_EVENTS | 1u << inbox->requested;
	if (is_possible || !has_processed)
		vgpu_pf_control_step(pf, vf, event, inbox->reasons[event]);
	if (event != inbox->requested)
		return;
	/* answer as if the request had come now, after the earlier events */
	if (!is_possible)
		finish_request(pf, vf, refuse(pf, vf, event), pf->requests.message);
	else if (event == VGPU_VF_EVENT_RESET && !pf->device.is_attached)
		/* if the device comes back with its state, this reset does not take place */
		finish_request(pf, vf, -ENODEV, "the device was lost before the reset");
	else
		finish_request(pf, vf, 0, "");
}

/*
 * Carries out the events and the deferred mailbox request, except those that must wait. Returns
 * false if there was nothing to carry out.
 */
static bool process_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	enum vgpu_vf_event event = next_event(pf, vf);
	bool has_processed = false;

	while (event != VGPU_VF_EVENT_NONE || vgpu_pf_mailbox_handle_deferred(pf, vf)) {
		if (event != VGPU_VF_EVENT_NONE)
			carry_out(pf, vf, event, has_processed);
		has_processed = true;
		event = next_event(pf, vf);
	}
	return has_processed;
}

/*
 * Carry out the pending events of all VFs, except events that wait for the engine. When the full
 * access of a VF ends, a VF with a lower number may get full access, so another pass may be needed.
 */
void vgpu_pf_inbox_process(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;
	bool has_processed = true;

	while (has_processed) {
		has_processed = false;
		vgpu_for_each_vf(pf, vf)
			has_processed |= process_vf(pf, vf);
	}
}

/*
 * Carry out an event that an operator requests. Return: 0 if done; -EINPROGRESS if the engine holds
 * the VF, and the reply comes later; -EINVAL if the VF's state does not allow the event;
 * -EBUSY if another request for the VF is in progress.
 */
int vgpu_pf_inbox_request(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			  uint64_t token)
{
	if (!vgpu_pf_control_allows(vf, event))
		return refuse(pf, vf, event);
	if (vf->inbox.token)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u: %s is still under way", vf->number,
					 vgpu_pf_control_event_name(vf->inbox.requested));
	vgpu_vf_post(vf, event, VGPU_PF_REASON_OPERATOR);
	vf->inbox.requested = event;
	process_vf(pf, vf);
	if (!(vf->inbox.events & 1u << event))
		return 0;
	vf->inbox.token = token;
	return -EINPROGRESS;
}

/* Drop all pending events, and answer the operator's request, if any, with -ENODEV. */
void vgpu_pf_inbox_abort(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->inbox.events = 0;
	finish_request(pf, vf, -ENODEV, "the device was detached");
}

/* Carry out DEVICE_LOST: the device has lost the VF's state. The scheduler must have stopped. */
void vgpu_pf_inbox_device_lost(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	/* keep the timers of guard.c and notify.c, which do not depend on the device */
	for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
		if (id != VGPU_VF_TIMER_GUARD && id != VGPU_VF_TIMER_NOTIFY)
			vgpu_pf_timer_clear_vf(vf, id);
	if (vf->state == VGPU_PF_VF_ABSENT)
		return;
	vf->attached = false;
	vf->control.gates = UINT32_MAX;
	/* in SCRUBBING, last_error is the result of the scrub */
	if (vf->state != VGPU_PF_VF_SCRUBBING)
		vf->last_error = VGPU_PF_REASON_DEVICE_LOST;
	vgpu_vf_post(vf, VGPU_VF_EVENT_DEVICE_LOST, VGPU_PF_REASON_DEVICE_LOST);
	process_vf(pf, vf);
}
