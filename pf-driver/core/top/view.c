// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Functions by which the platform reads the core's state; pf.h documents them. A load is atomic
 * where pf.h allows the call while another thread is in the core and may change the value.
 */
#include "pf-driver/core/top/parts.h"

uint32_t vgpu_pf_bytes(void)
{
	return (uint32_t)sizeof(struct vgpu_pf);
}

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
		.awaits_durable = core->state == VGPU_PF_VF_SCRUBBING &&
				  core->scrub.stage == VGPU_VF_SCRUB_DONE,
		.is_throttled = core->contract.is_throttled,
		.weight = core->share.table_weight ? core->share.weight : 0,
	};

	memcpy(view.uuid, core->config.uuid, sizeof(view.uuid));
	return view;
}

bool vgpu_pf_view_device_was_lost_in_reset(const struct vgpu_pf *pf)
{
	return pf->device_reset.is_lost;
}

const struct vgpu_pf_device *vgpu_pf_view_device(const struct vgpu_pf *pf)
{
	return &pf->device;
}

uint32_t vgpu_pf_view_max_gap(const struct vgpu_pf *pf)
{
	return __atomic_load_n(&pf->params.max_gap_ms, __ATOMIC_RELAXED);
}

uint64_t vgpu_pf_view_next_event(const struct vgpu_pf *pf)
{
	return pf->events.seq;
}

const char *vgpu_pf_view_message(const struct vgpu_pf *pf)
{
	return pf->requests.message;
}

bool vgpu_pf_view_is_leased(const struct vgpu_pf *pf)
{
	return __atomic_load_n(&pf->requests.lease_holder, __ATOMIC_RELAXED) != 0;
}
