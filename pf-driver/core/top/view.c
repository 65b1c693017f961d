// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What homes may see of the core's state. */
#include "pf-driver/core/top/parts.h"

/**
 * vgpu_pf_bytes() - how much memory struct vgpu_pf takes
 */
uint32_t vgpu_pf_bytes(void)
{
	return (uint32_t)sizeof(struct vgpu_pf);
}

/**
 * vgpu_pf_view_vf() - what is known of one VF
 * @pf: the PF
 * @vf: VF number, 1..total
 */
struct vgpu_pf_vf_view vgpu_pf_view_vf(const struct vgpu_pf *pf, uint32_t vf)
{
	const struct vgpu_vf *core = &pf->vfs[vf];
	struct vgpu_pf_vf_view view = {
		.state = core->state,
		.generation = core->generation,
		.vram_bytes = core->config.vram_bytes,
		.preempt_timeout_us = core->config.preempt_timeout_us,
		.is_provisioned = vgpu_vf_is_provisioned(core),
		.is_attached = core->attached,
		.has_driver = core->control.driver_loaded,
		.wants_durable = core->state == VGPU_PF_VF_SCRUBBING &&
				 core->scrub.stage == VGPU_VF_SCRUB_DONE,
		.is_capped = core->contract.is_held,
		.weight = core->share.wanted ? core->share.weight : 0,
	};

	memcpy(view.uuid, core->config.uuid, sizeof(view.uuid));
	return view;
}

/**
 * vgpu_pf_view_was_lost_in_reset() - did the device not come back from its own reset?
 * @pf: the PF
 */
bool vgpu_pf_view_was_lost_in_reset(const struct vgpu_pf *pf)
{
	return pf->whole_reset.is_lost;
}

/**
 * vgpu_pf_view_device() - the facts of the device; may be read without serialisation
 * @pf: the PF
 */
const struct vgpu_pf_device *vgpu_pf_view_device(const struct vgpu_pf *pf)
{
	return &pf->device;
}

/**
 * vgpu_pf_view_max_gap() - how long a VF with work is off the engine at most
 * @pf: the PF
 *
 * Return: ms; 0: no limit. May be read without serialisation.
 */
uint32_t vgpu_pf_view_max_gap(const struct vgpu_pf *pf)
{
	return __atomic_load_n(&pf->params.max_gap_ms, __ATOMIC_RELAXED);
}

/**
 * vgpu_pf_view_next_event() - the seq that the next event will get
 * @pf: the PF
 */
uint64_t vgpu_pf_view_next_event(const struct vgpu_pf *pf)
{
	return pf->events.seq;
}

/**
 * vgpu_pf_view_message() - why the last call failed
 * @pf: the PF
 */
const char *vgpu_pf_view_message(const struct vgpu_pf *pf)
{
	return pf->requests.message;
}

/**
 * vgpu_pf_view_is_leased() - does a client hold the policy lease?
 * @pf: the PF
 *
 * May be read without serialisation.
 */
bool vgpu_pf_view_is_leased(const struct vgpu_pf *pf)
{
	return __atomic_load_n(&pf->requests.lease_holder, __ATOMIC_RELAXED) != 0;
}
