// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Doorbell pages of a VF: the number of live pages of the VF's BAR2, counted from page 0. */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

/* May a VF have this many pages? Return: 0 or -EINVAL with a message. */
int vgpu_pf_doorbell_check(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t pages)
{
	if (pages == 0 || pages > pf->device.doorbell_pages)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: %u doorbell pages; 1 to %u exist",
					 vf->number, pages, pf->device.doorbell_pages);
	return 0;
}

/* Set how many doorbell pages of a VF are live. Return: 0 or negative errno. */
int vgpu_pf_doorbell_set(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t pages)
{
	return vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_DOORBELLS,
					 HW_PREP(VGPU_DOORBELLS, PAGES, pages));
}

/* Read from the device how many doorbell pages of a VF are live. Return: number of pages. */
uint32_t vgpu_pf_doorbell_get(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return HW_GET(VGPU_DOORBELLS, PAGES,
		      vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_DOORBELLS));
}
