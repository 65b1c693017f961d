// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rate limit on the events and log lines that a guest can cause. The first 24 of each minute are
 * written; the event UNTOLD reports the number of the others. A VF in quarantine causes none.
 */
#include "pf-driver/core/base/parts.h"

#define TELL_NS	 (60 * VGPU_NS_PER_S)
#define TELL_MAX 24u

/*
 * May an event or a log line that a guest caused be written? Return: false if the VF is in
 * quarantine, or if the limit of this minute is used up. In the latter case the event or line is
 * counted for the event UNTOLD.
 */
bool vgpu_pf_tell_allows(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->state == VGPU_PF_VF_QUARANTINED)
		return false;
	if (vf->guard.told == 0)
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_TELL, TELL_NS);
	if (vf->guard.told == TELL_MAX) {
		vf->guard.untold++;
		return false;
	}
	vf->guard.told++;
	return true;
}

/* End a minute: report how many events and log lines were left out. */
void vgpu_pf_tell_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->guard.untold)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_UNTOLD, vf->number, vf->guard.untold, 0);
	vf->guard.told = 0;
	vf->guard.untold = 0;
}
