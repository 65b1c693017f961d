// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Access to the device: registers of the PF, among them a bank for each VF; the GPU-IOV capability
 * (a vendor-specific capability, VSEC) in config space; and the scheduler block of this capability.
 * vgpu_pf_device_probe() reads the properties of the device. In the functions below, reg is a dword
 * number, and offset is in bytes from the start of the capability or the block (in read_config(),
 * of config space). A read fails if, for example, the device is gone.
 */
#include "pf-driver/core/base/parts.h"
#include "pf-driver/hw/pci.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"

/* offset and bit of the command register in the PCI header */
#define PCI_COMMAND	   0x04u
#define PCI_COMMAND_MASTER 0x0004u

/* Read a register of the PF. Return: the value; all ones if the read fails. */
uint32_t vgpu_pf_device_read(struct vgpu_pf *pf, uint32_t reg)
{
	uint32_t value = UINT32_MAX;

	if (pf->os->ops->mmio_read(pf->os, reg, &value))
		return UINT32_MAX;
	return value;
}

/* Write a register of the PF. Return: 0 or negative errno. */
int vgpu_pf_device_write(struct vgpu_pf *pf, uint32_t reg, uint32_t value)
{
	return pf->os->ops->mmio_write(pf->os, reg, value);
}

/*
 * Read a register of a VF's bank. reg: REG_VGPU_VF0_*, the register in bank 0. Return: the value;
 * all ones if the read fails.
 */
uint32_t vgpu_pf_device_read_bank(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg)
{
	return vgpu_pf_device_read(pf, reg + vf->number * HW_VGPU_BANK_STRIDE);
}

/* Write a register of a VF's bank; reg: REG_VGPU_VF0_*. Return: 0 or negative errno. */
int vgpu_pf_device_write_bank(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg,
			      uint32_t value)
{
	return vgpu_pf_device_write(pf, reg + vf->number * HW_VGPU_BANK_STRIDE, value);
}

/*
 * Read two adjacent registers of a VF's bank as one value; reg_lo: REG_VGPU_VF0_*_LO. Return: the
 * value; a half whose read fails is all ones.
 */
uint64_t vgpu_pf_device_read_bank64(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg_lo)
{
	uint64_t low = vgpu_pf_device_read_bank(pf, vf, reg_lo);

	return low | (uint64_t)vgpu_pf_device_read_bank(pf, vf, reg_lo + 1) << 32;
}

/*
 * Write one value to two adjacent registers of a VF's bank, the low half first; reg_lo:
 * REG_VGPU_VF0_*_LO. Return: 0 or negative errno.
 */
int vgpu_pf_device_write_bank64(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg_lo,
				uint64_t value)
{
	int error = vgpu_pf_device_write_bank(pf, vf, reg_lo, (uint32_t)value);

	return error ? error
		     : vgpu_pf_device_write_bank(pf, vf, reg_lo + 1, (uint32_t)(value >> 32));
}

static uint32_t read_config(struct vgpu_pf *pf, uint32_t offset)
{
	uint32_t value = UINT32_MAX;

	if (pf->os->ops->config_read(pf->os, offset, 4, &value))
		return UINT32_MAX;
	return value;
}

/* Read a dword of the GPU-IOV capability. Return: the value; all ones if the read fails. */
uint32_t vgpu_pf_device_vsec_read(struct vgpu_pf *pf, uint32_t offset)
{
	return read_config(pf, pf->device.vsec + offset);
}

/* Write a dword of the GPU-IOV capability. Return: 0 or negative errno. */
int vgpu_pf_device_vsec_write(struct vgpu_pf *pf, uint32_t offset, uint32_t value)
{
	return pf->os->ops->config_write(pf->os, pf->device.vsec + offset, 4, value);
}

/* Read a dword of the GFX scheduler block. Return: the value; all ones if the read fails. */
uint32_t vgpu_pf_device_scheduler_read(struct vgpu_pf *pf, uint32_t offset)
{
	return read_config(pf, pf->device.scheduler + offset);
}

/* Write a dword of the GFX scheduler block. Return: 0 or negative errno. */
int vgpu_pf_device_scheduler_write(struct vgpu_pf *pf, uint32_t offset, uint32_t value)
{
	return pf->os->ops->config_write(pf->os, pf->device.scheduler + offset, 4, value);
}

/* End the PF's bus mastering (access to host memory), until the platform turns it on again. */
void vgpu_pf_device_stop_dma(struct vgpu_pf *pf)
{
	uint32_t command = 0;

	if (pf->os->ops->config_read(pf->os, PCI_COMMAND, 2, &command))
		return;
	command &= ~PCI_COMMAND_MASTER;
	pf->os->ops->config_write(pf->os, PCI_COMMAND, 2, command);
	/* the write may be posted; the answer to this read shows that the write has arrived */
	pf->os->ops->config_read(pf->os, PCI_COMMAND, 2, &command);
}

static uint32_t find_vsec(struct vgpu_pf *pf)
{
	uint32_t offset = VGPU_PCI_ECAP_FIRST;

	/* at most one step for each 8 bytes of config space, as the capability list may loop */
	for (uint32_t step = 0; step < VGPU_PCI_CONFIG_BYTES / 8; step++) {
		uint32_t header = read_config(pf, offset);

		if (header == 0 || header == UINT32_MAX)
			return 0;
		if (VGPU_PCI_ECAP_ID(header) == VGPU_PCI_ECAP_VENDOR &&
		    VGPU_PCI_VSEC_ID(read_config(pf, offset + VGPU_PCI_VSEC_HEADER)) ==
			    GPUIOV_VSEC_ID)
			return offset;
		offset = VGPU_PCI_ECAP_NEXT(header);
		if (offset < VGPU_PCI_ECAP_FIRST)
			return 0;
	}
	return 0;
}

/* finds the GFX scheduler block; returns vsec if the capability has none, or 0 after an error */
static uint32_t find_scheduler(struct vgpu_pf *pf, uint32_t vsec)
{
	uint32_t value = 0;

	if (pf->os->ops->config_read(pf->os, vsec + GPUIOV_GFX_SCH_OFFSET, 1, &value))
		return 0;
	return vsec + (value & 0xffu) * 16u; /* the offset has units of 16 bytes */
}

/* refuses a device with an unsupported number of VFs or CUs, or an unsupported size of VRAM */
static int check_properties(struct vgpu_pf *pf, const struct vgpu_pf_device *device)
{
	if (device->total_vfs == 0 || device->total_vfs > VGPU_PF_MAX_VFS)
		return vgpu_pf_text_fail(pf, -ENODEV,
					 "device reports %u VFs; 1 to %u are supported",
					 device->total_vfs, VGPU_PF_MAX_VFS);
	/* at least one unit for the PF and one for a VF */
	if (device->vram_bytes < 2 * VGPU_VRAM_UNIT_BYTES ||
	    device->vram_bytes > VGPU_RANGE_UNITS * VGPU_VRAM_UNIT_BYTES)
		return vgpu_pf_text_fail(
			pf, -ENODEV, "device reports %llu MiB of VRAM; %llu to %llu are supported",
			LLU(device->vram_bytes >> 20), LLU(2 * VGPU_VRAM_UNIT_BYTES >> 20),
			LLU(VGPU_RANGE_UNITS * VGPU_VRAM_UNIT_BYTES >> 20));
	if (device->cu_count == 0 || device->cu_count > 64)
		return vgpu_pf_text_fail(pf, -ENODEV,
					 "device reports %u CUs; 1 to 64 are supported",
					 device->cu_count);
	return 0;
}

/* fails if a property reads all ones, which no device reports: the device is gone */
static int read_properties(struct vgpu_pf *pf, struct vgpu_pf_device *device)
{
	uint32_t vram_mb = vgpu_pf_device_read(pf, REG_VGPU_VRAM_SIZE_MB);
	uint32_t aperture_mb = vgpu_pf_device_read(pf, REG_VGPU_APERTURE_SIZE_MB);

	device->total_vfs = vgpu_pf_device_read(pf, REG_VGPU_TOTAL_VFS);
	device->vram_bytes = (uint64_t)vram_mb << 20;
	device->aperture_bytes = (uint64_t)aperture_mb << 20;
	device->doorbell_pages = vgpu_pf_device_read(pf, REG_VGPU_DOORBELL_PAGES);
	device->cu_count = vgpu_pf_device_read(pf, REG_VGPU_CU_COUNT);
	if (device->total_vfs == UINT32_MAX || vram_mb == UINT32_MAX || aperture_mb == UINT32_MAX ||
	    device->doorbell_pages == UINT32_MAX || device->cu_count == UINT32_MAX)
		return vgpu_pf_text_fail(pf, -ENODEV,
					 "the device disappeared while it was identified");
	return 0;
}

/*
 * Read the properties of the device into `device`; pf->device stays unchanged. Return: 0, or
 * -ENODEV with a message.
 */
int vgpu_pf_device_probe(struct vgpu_pf *pf, struct vgpu_pf_device *device)
{
	int error;

	if (vgpu_pf_device_read(pf, REG_VGPU_ID) != VGPU_ID_MAGIC ||
	    vgpu_pf_device_read(pf, REG_VGPU_VERSION) != VGPU_REGISTERS_VERSION)
		return vgpu_pf_text_fail(
			pf, -ENODEV, "not a vgpu device: no VGPU registers of version 1 in BAR5");
	device->vsec = find_vsec(pf);
	if (device->vsec == 0)
		return vgpu_pf_text_fail(pf, -ENODEV, "no GPU-IOV capability in config space");
	device->scheduler = find_scheduler(pf, device->vsec);
	if (device->scheduler == device->vsec || device->scheduler == 0)
		return vgpu_pf_text_fail(pf, -ENODEV, "GPU-IOV capability has no GFX scheduler");
	error = read_properties(pf, device);
	return error ? error : check_properties(pf, device);
}

/*
 * Read the device's clock, which stamps the run log (run/account.c) and RUN events. The read of the
 * low half latches the high half. Return: ns; a half whose read fails is all ones.
 */
uint64_t vgpu_pf_device_time_ns(struct vgpu_pf *pf)
{
	uint64_t low = vgpu_pf_device_read(pf, REG_VGPU_TIME_NS_LO);

	return low | (uint64_t)vgpu_pf_device_read(pf, REG_VGPU_TIME_NS_HI) << 32;
}
