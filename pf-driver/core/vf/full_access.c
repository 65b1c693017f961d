// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Grants and ends full access, which a guest's driver has while it loads, unloads or recovers. The
 * register write gate of the VF is then open, so that the driver can write registers that are
 * read-only at other times. By default the other VFs keep running. If the VF has the flag
 * EXCLUSIVE_FULL_ACCESS, no other VF runs or gets full access during that time, as silicon without
 * a bank of registers for each VF requires. Full access has a time limit, after which the core
 * resets the VF. A pause stops the time limit and lets the other VFs run; when the VF is resumed,
 * the whole time limit starts again. A request during full access does not start it again.
 */
#include "pf-driver/core/vf/parts.h"

#define FULL_ACCESS_DEFAULT_MS 3000u

/* argument of the event FULL_ACCESS */
enum full_access_event {
	FULL_ACCESS_RELEASED = 0,
	FULL_ACCESS_GRANTED = 1,
	FULL_ACCESS_TIMED_OUT = 2,
};

static uint64_t limit_ns(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint32_t ms = vf->config.full_access_timeout_ms;

	return vgpu_pf_timer_scaled_ns(pf, ms ? ms : FULL_ACCESS_DEFAULT_MS);
}

static bool is_exclusive(const struct vgpu_vf *vf)
{
	return vf->config.flags & VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS;
}

/* true if the VF has full access and is not paused, or will get full access by a pending GRANT */
static bool has_or_gets_access(const struct vgpu_vf *vf)
{
	return (vf->access.granted && vf->state != VGPU_PF_VF_PAUSED) ||
	       vf->inbox.events & 1u << VGPU_VF_EVENT_GRANT;
}

/*
 * Return: true if the VF cannot get full access now, because another VF has or gets full access,
 * and at least one of the two VFs has the flag EXCLUSIVE_FULL_ACCESS.
 */
bool vgpu_pf_full_access_is_taken(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_vf *other;

	vgpu_for_each_vf(pf, other)
		if (other != vf && has_or_gets_access(other) &&
		    (is_exclusive(vf) || is_exclusive(other)))
			return true;
	return false;
}

/*
 * Grant full access for a mailbox request (enum mailbox_to_pf): write VBIOS and PF2VF, unless the
 * driver unloads, and post GRANT. If a write fails, answer FAIL.
 */
void vgpu_pf_full_access_grant(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t request)
{
	int error = 0;

	/* a driver that loads or recovers reads this data, which the guest may have overwritten */
	if (request != MAILBOX_REQ_GPU_FINI_ACCESS) {
		error = vgpu_pf_vbios_write(pf, vf);
		if (!error)
			error = vgpu_pf_pf2vf_write(pf, vf);
	}
	if (error) {
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
		return;
	}
	vgpu_vf_post(vf, VGPU_VF_EVENT_GRANT, VGPU_PF_REASON_NONE);
}

/* Begin full access: open the gates, start the time limit. Notify the guest each time it asks. */
void vgpu_pf_full_access_begin(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (!vf->access.granted) {
		vf->access.granted = true;
		vf->access.count++;
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_FULL_ACCESS, vf->number, FULL_ACCESS_GRANTED,
				     0);
		/* not again: a guest that repeats its request must not get more time */
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_ACCESS, limit_ns(pf, vf));
	}
	if (is_exclusive(vf))
		vgpu_pf_run_engine_set_exclusive(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
	/* dword 2 would be the checksum key of PF2VF v1; v2, which the core writes, has no key */
	vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_READY_TO_ACCESS_GPU, 0, 0);
}

/* End full access, if the VF has it. The caller must then call vgpu_pf_control_set_gates(). */
void vgpu_pf_full_access_end(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_ACCESS);
	if (!vf->access.granted)
		return;
	vf->access.granted = false;
	vgpu_pf_checkpoint_mark(pf);
	if (vgpu_pf_run_engine_exclusive(pf) == vf->number)
		vgpu_pf_run_engine_set_exclusive(pf, NULL);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_FULL_ACCESS, vf->number, FULL_ACCESS_RELEASED, 0);
}

/* Stop the time limit of a VF that has been paused, and let the other VFs run again. */
void vgpu_pf_full_access_suspend(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_ACCESS);
	if (vgpu_pf_run_engine_exclusive(pf) == vf->number)
		vgpu_pf_run_engine_set_exclusive(pf, NULL);
}

/*
 * Return: true if a paused VF cannot be resumed now, because it has full access, and the full
 * access that another VF got during the pause excludes it.
 */
bool vgpu_pf_full_access_prevents_resume(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vf->access.granted && vgpu_pf_full_access_is_taken(pf, vf);
}

/*
 * Return: true if full access lets the VF write registers now. In a pause of an exclusive VF it
 * does not, because other VFs may run.
 */
bool vgpu_pf_full_access_is_open(const struct vgpu_vf *vf)
{
	return vf->access.granted && !(vf->state == VGPU_PF_VF_PAUSED && is_exclusive(vf));
}

/*
 * After the resume of a VF or its adoption by a new core: start the whole time limit again, if the
 * VF has full access and is not paused.
 */
void vgpu_pf_full_access_resume(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (!vf->access.granted || vf->state == VGPU_PF_VF_PAUSED)
		return;
	vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_ACCESS, limit_ns(pf, vf));
	if (is_exclusive(vf))
		vgpu_pf_run_engine_set_exclusive(pf, vf);
}

/* Reset a VF whose driver did not release full access in time. */
void vgpu_pf_full_access_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (!vf->access.granted)
		return;
	vf->access.timeouts++;
	if (vgpu_pf_notify_allows(pf, vf))
		vgpu_pf_text_log(pf, VGPU_OS_LOG_WARNING, "VF%u: full access not released in time",
				 vf->number);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_FULL_ACCESS, vf->number, FULL_ACCESS_TIMED_OUT, 0);
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
	if (vgpu_pf_control_allows(vf, VGPU_VF_EVENT_RESET))
		vgpu_vf_post(vf, VGPU_VF_EVENT_RESET, VGPU_PF_REASON_FULL_ACCESS_TIMEOUT);
	vgpu_pf_guard_count(pf, vf, VGPU_GUARD_EXCLUSIVE_TIMEOUT);
}
