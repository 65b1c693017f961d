// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rate limit on the events HANG, RESET_DONE and GUEST_ERROR, and on log lines, if a guest causes
 * them. For each VF, the first 24 of each minute are written; the event UNREPORTED reports the
 * number of the others. For a VF in quarantine, none is written or counted.
 */
#include "pf-driver/core/base/parts.h"

#define NOTIFY_NS  (60 * VGPU_NS_PER_S)
#define NOTIFY_MAX 24u

/*
 * Check whether an event or a log line that a guest caused may be written. Return: false if the VF
 * is in quarantine, or if the limit of this minute is used up. In the latter case the event or line
 * is counted for the event UNREPORTED.
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
