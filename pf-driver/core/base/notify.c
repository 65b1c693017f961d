// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Limits the rate of some reports that a guest can cause: the events HANG and GUEST_ERROR, the
 * event RESET_DONE of a reset that a guest can cause, and log lines about failed world switches and
 * about time limits that a guest missed. For each VF, the core writes the first 24 of these reports
 * in a minute, which begins with its first report. At the end of the minute, the event UNREPORTED
 * reports how many more there were, if any. For a VF in quarantine, the core neither writes nor
 * counts these reports.
 */
#include "pf-driver/core/base/parts.h"

#define NOTIFY_NS  (60 * VGPU_NS_PER_S)
#define NOTIFY_MAX 24u

/*
 * Check whether the core may write a report that a guest caused, and count the report. Return:
 * false if the VF is in quarantine, or if this minute of the VF has had NOTIFY_MAX reports.
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

/* End a minute: append the event UNREPORTED if the core has left out reports. */
void vgpu_pf_notify_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->guard.unreported)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_UNREPORTED, vf->number, vf->guard.unreported,
				     0);
	vf->guard.notified = 0;
	vf->guard.unreported = 0;
}
