// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Compute units (CUs) that a VF may use while it is in the engine. They are a mask of the device's
 * CUs; masks of VFs may overlap, because VFs share the engine in time.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/hw/regs.h"

/**
 * vgpu_pf_compute_unit_all() - mask of all CUs of the device
 * @pf: the PF
 *
 * Return: bit per CU.
 */
uint64_t vgpu_pf_compute_unit_all(const struct vgpu_pf *pf)
{
	return pf->device.cu_count >= 64 ? UINT64_MAX : (1ull << pf->device.cu_count) - 1;
}

/**
 * vgpu_pf_compute_unit_check() - may a VF have these CUs?
 * @pf: the PF
 * @vf: the VF, for the message
 * @mask: bit per CU
 *
 * Return: 0 or -EINVAL with a message.
 */
int vgpu_pf_compute_unit_check(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t mask)
{
	uint64_t all = vgpu_pf_compute_unit_all(pf);

	if (mask == 0 || (mask & ~all))
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: CU mask 0x%llx; the device has 0x%llx",
					 vf->number, (unsigned long long)mask,
					 (unsigned long long)all);
	return 0;
}

/**
 * vgpu_pf_compute_unit_set() - set the CUs that a VF may use
 * @pf: the PF
 * @vf: the VF
 * @mask: bit per CU
 *
 * Return: 0 or negative errno.
 */
int vgpu_pf_compute_unit_set(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t mask)
{
	int error = vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_CU_MASK_LO, (uint32_t)mask);

	if (error)
		return error;
	return vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_CU_MASK_HI, (uint32_t)(mask >> 32));
}

/**
 * vgpu_pf_compute_unit_get() - read from the device which CUs a VF may use
 * @pf: the PF
 * @vf: the VF
 *
 * Return: bit per CU.
 */
uint64_t vgpu_pf_compute_unit_get(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t low = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_CU_MASK_LO);
	uint64_t high = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_CU_MASK_HI);

	return low | high << 32;
}
