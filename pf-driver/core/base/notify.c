// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rate limit on what a guest can cause: the events HANG, RESET_DONE and GUEST_ERROR, and log lines
 * about failed world switches and missed time limits. For each VF, the core writes the first 24
 * events and lines of a minute. The event UNREPORTED has the number of events and lines that were
 * left out. For a VF in quarantine, the core neither writes nor counts any.
 */
#include "pf-driver/core/base/parts.h"

#define NOTIFY_NS  (60 * VGPU_NS_PER_S)
#define NOTIFY_MAX 24u

/*
 * Check whether an event or a log line that a guest caused may be written. Return: false if the VF
 * is in quarantine, or if the limit of this minute is used up. If the limit is used up, the event
 * UNREPORTED will count the event or line.
 */
bool vgpu_pf_notify_allows(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->state == VGPU_PF_VF_QUARANTINED)
		return false;
	if (vf->guard.notified == 0)
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_NOTIFY, NOTIFY_NS);
	if (vf->guard.notified == NOTIFY_MAX) {
		vf->guard.unreported++;
		return false;
	}
	vf->guard.notified++;
	return true;
}

/* End a minute: report how many events and log lines were left out. */
void vgpu_pf_notify_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->guard.unreported)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_UNREPORTED, vf->number, vf->guard.unreported,
				     0);
	vf->guard.notified = 0;
	vf->guard.unreported = 0;
}
