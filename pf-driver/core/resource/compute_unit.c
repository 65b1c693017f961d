// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Compute units (CUs) that a VF may use while it is in the engine. They are a mask of the device's
 * CUs; masks of VFs may overlap, because VFs share the engine in time.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/hw/regs.h"

/* Mask of all CUs of the device. Return: bit per CU. */
uint64_t vgpu_pf_compute_unit_all(const struct vgpu_pf *pf)
{
	return pf->device.cu_count >= 64 ? UINT64_MAX : (1ull << pf->device.cu_count) - 1;
}

/* May a VF have these CUs? Return: 0 or -EINVAL with a message. */
int vgpu_pf_compute_unit_check(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t mask)
{
	uint64_t all = vgpu_pf_compute_unit_all(pf);

	if (mask == 0 || (mask & ~all))
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: CU mask 0x%llx; the device has 0x%llx",
					 vf->number, (unsigned long long)mask,
					 (unsigned long long)all);
	return 0;
}

/* Set the CUs that a VF may use. Return: 0 or negative errno. */
int vgpu_pf_compute_unit_set(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t mask)
{
	int error = vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_CU_MASK_LO, (uint32_t)mask);

	if (error)
		return error;
	return vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_CU_MASK_HI, (uint32_t)(mask >> 32));
}

/* Read from the device which CUs a VF may use. Return: bit per CU. */
uint64_t vgpu_pf_compute_unit_get(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t low = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_CU_MASK_LO);
	uint64_t high = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_CU_MASK_HI);

	return low | high << 32;
}
