// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What has happened to a VF waits in its inbox (vgpu_vf_post()) and is carried out when the core
 * settles: first what does not mind whether the engine holds the VF; then, once the engine does not
 * (for whatever reason), the weightiest event, and what an operator asked for if the state still
 * allows that. What the weightiest one has overtaken is forgotten. Whether a VF is READY or RUNNING
 * is asked of the engine here, not told by it.
 */
#include "pf-driver/core/vf/parts.h"

#define KEPT_EVENTS (~0u << VGPU_VF_EVENT_PAUSE)

static enum vgpu_vf_event next_event(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint32_t events = vf->inbox.events;

	if (events & ~KEPT_EVENTS)
		return vgpu_vf_weightiest(events & ~KEPT_EVENTS);
	if (vf->state == VGPU_PF_VF_READY && vgpu_pf_run_engine_is_loaded(pf, vf))
		return VGPU_VF_EVENT_LOADED;
	if (vgpu_pf_run_engine_holds(pf, vf))
		return VGPU_VF_EVENT_NONE;
	return vf->state == VGPU_PF_VF_RUNNING ? VGPU_VF_EVENT_UNLOADED
					       : vgpu_vf_weightiest(events);
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
	vf->inbox.asked = VGPU_VF_EVENT_NONE;
	vf->inbox.token = 0;
}

/* has_moved: something came first, and may have made this one impossible */
static void carry_out(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
		      bool has_moved)
{
	struct vgpu_vf_inbox *inbox = &vf->inbox;
	bool is_possible = vgpu_pf_control_cell(vf->state, event);

	inbox->events &= ~(1u << event);
	if (1u << event & KEPT_EVENTS)
		inbox->events &= ~KEPT_EVENTS | 1u << inbox->asked;
	if (is_possible || !has_moved)
		vgpu_pf_control_step(pf, vf, event, inbox->reasons[event]);
	if (event != inbox->asked)
		return;
	/* as it would have been refused, had it come a moment later */
	if (is_possible)
		finish_request(pf, vf, 0, "");
	else
		finish_request(pf, vf, refuse(pf, vf, event), pf->requests.message);
}

static void settle_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	enum vgpu_vf_event event = next_event(pf, vf);
	bool has_moved = false;

	while (event != VGPU_VF_EVENT_NONE || vgpu_pf_mailbox_resume(pf, vf)) {
		if (event != VGPU_VF_EVENT_NONE)
			carry_out(pf, vf, event, has_moved);
		has_moved = true;
		event = next_event(pf, vf);
	}
}

/**
 * vgpu_pf_inbox_settle() - carry out what has happened to the VFs, until nothing moves
 * @pf: the PF
 *
 * One pass is enough: nothing that happens here moves a VF into the engine or out of it.
 */
void vgpu_pf_inbox_settle(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		settle_vf(pf, vf);
}

/**
 * vgpu_pf_inbox_request() - an operator asks for an event
 * @pf: the PF
 * @vf: the VF that it is for
 * @event: the event
 * @token: of the request
 *
 * Return: 0 if it is done; -EINPROGRESS if the engine holds the VF, and the reply comes later;
 * -EINVAL if the VF's state does not allow it; -EBUSY if another request is under way.
 */
int vgpu_pf_inbox_request(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			  uint64_t token)
{
	if (!vgpu_pf_control_allows(vf, event))
		return refuse(pf, vf, event);
	if (vf->inbox.token)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u: %s is still under way", vf->number,
					 vgpu_pf_control_event_name(vf->inbox.asked));
	vgpu_vf_post(vf, event, VGPU_PF_REASON_OPERATOR);
	vf->inbox.asked = event;
	settle_vf(pf, vf);
	if (!(vf->inbox.events & 1u << event))
		return 0;
	vf->inbox.token = token;
	return -EINPROGRESS;
}

/**
 * vgpu_pf_inbox_leave() - what waits for the engine is not carried out by this core any more
 * @pf: the PF
 * @vf: whose; an operator who waits is told
 */
void vgpu_pf_inbox_leave(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->inbox.events = 0;
	finish_request(pf, vf, -ENODEV, "the device was let go");
}

/**
 * vgpu_pf_inbox_lose() - a VF has lost its state with the device
 * @pf: the PF, whose engine holds nobody
 * @vf: whom; what has waited for the engine has been carried out
 */
void vgpu_pf_inbox_lose(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	for (uint32_t id = 0; id < VGPU_VF_TIMERS; id++)
		if (id != VGPU_VF_TIMER_GUARD && id != VGPU_VF_TIMER_TELL)
			vgpu_pf_timer_clear_vf(vf, id);
	if (vf->state == VGPU_PF_VF_ABSENT)
		return;
	vf->attached = false;
	vf->control.gates = UINT32_MAX;
	if (vf->state != VGPU_PF_VF_SCRUBBING)
		vf->last_error = VGPU_PF_REASON_DEVICE_LOST;
	vgpu_vf_post(vf, VGPU_VF_EVENT_DEVICE_LOST, VGPU_PF_REASON_DEVICE_LOST);
	settle_vf(pf, vf);
}
