// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How much is said of what a guest causes: each minute the first events and log lines, and at its
 * end the number of the others. Of a VF in quarantine nothing is said.
 */
#include "pf-driver/core/base/parts.h"

#define TELL_NS	 (60 * VGPU_NS_PER_S)
#define TELL_MAX 24u

/**
 * vgpu_pf_tell_allows() - may an event or a log line that a guest causes be written?
 * @pf: the PF
 * @vf: whose guest
 *
 * Return: false if this minute has had enough of them: it is counted then, and reported by number.
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

/**
 * vgpu_pf_tell_timer() - a minute is over: report how much was left out
 * @pf: the PF
 * @vf: whose
 */
void vgpu_pf_tell_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->guard.untold)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_UNTOLD, vf->number, vf->guard.untold, 0);
	vf->guard.told = 0;
	vf->guard.untold = 0;
}
