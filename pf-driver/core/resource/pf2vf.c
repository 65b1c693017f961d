// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PF2VF and VF2PF are messages in the VF's VRAM: the PF writes PF2VF for the guest's driver, and
 * the driver writes VF2PF for the PF. The core writes PF2VF as a whole when it provisions the VF,
 * before it grants full access to a driver that loads or recovers, and after a reset. The contents
 * depend only on the VF's number and uuid. The core uses VF2PF only if size, version and checksum
 * are valid, and replaces unprintable characters of the driver's version.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/hw/pf2vf.h"

static uint32_t sum_bytes(const uint8_t *data, uint32_t bytes)
{
	uint32_t sum = 0;

	while (bytes--)
		sum += *data++;
	return sum;
}

static void fill_message(struct pf2vf_message *message, const struct vgpu_vf *vf)
{
	memset(message, 0, sizeof(*message));
	message->size = PF2VF_BYTES;
	message->version = PF2VF_VERSION;
	/* not PP_ONE_VF: the guest would look for power tables that a VF does not have */
	message->feature_flags = 0;
	message->vf2pf_update_interval_ms = PF2VF_UPDATE_INTERVAL_MS;
	memcpy(&message->uuid_lo, vf->config.uuid, sizeof(message->uuid_lo));
	memcpy(&message->uuid_hi, vf->config.uuid + 4, sizeof(message->uuid_hi));
	memcpy(message->uuid_info, vf->config.uuid, sizeof(message->uuid_info));
	message->fcn_idx = vf->number;
	message->pcie_atomic_ops_support_flags = PF2VF_PCIE_ATOMICS_32_64;
	message->gpu_capacity = PF2VF_GPU_CAPACITY_FULL;
	/* the checksum is still 0, so this is the sum of all other bytes */
	message->checksum = sum_bytes((const uint8_t *)message, sizeof(*message));
}

HW_STATIC_ASSERT(sizeof(struct pf2vf_message) % VGPU_VRAM_WORD_BYTES == 0);

/* Write PF2VF, which the guest's driver reads when it loads. Return: 0 or negative errno. */
int vgpu_pf_pf2vf_write(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct pf2vf_message *message = (void *)pf->scratch;

	fill_message(message, vf);
	return vgpu_pf_vram_write_vf(pf, vf, VF_VRAM_PF2VF_OFFSET, message, sizeof(*message));
}

static uint32_t get_dword(const uint8_t *data, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, data + offset, sizeof(value));
	return value;
}

static bool is_valid(const uint8_t *message)
{
	uint32_t size = get_dword(message, VF2PF_SIZE);
	uint32_t checksum = get_dword(message, VF2PF_CHECKSUM);
	uint32_t sum;

	if (size < VF2PF_FB_SIZE_MB + 4 || size > PF2VF_BYTES ||
	    get_dword(message, VF2PF_VERSION_OFFSET) != VF2PF_VERSION)
		return false;
	sum = sum_bytes(message, size) - sum_bytes(message + VF2PF_CHECKSUM, sizeof(checksum));
	return sum == checksum;
}

static char make_printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f ? (char)c : '?';
}

/* Read VF2PF. If the message is valid, set driver_version and guest_fb_usage_bytes of `out`. */
void vgpu_pf_pf2vf_read_guest(struct vgpu_pf *pf, const struct vgpu_vf *vf, struct vgpu_pf_vf *out)
{
	const uint8_t *message = pf->scratch;
	uint32_t usage_mb;

	if (vgpu_pf_vram_read_vf(pf, vf, VF_VRAM_VF2PF_OFFSET, pf->scratch, PF2VF_BYTES))
		return;
	if (!is_valid(message))
		return;
	for (uint32_t i = 0; i + 1 < VF2PF_DRIVER_VERSION_BYTES; i++) {
		uint8_t c = message[VF2PF_DRIVER_VERSION + i];

		if (c == 0)
			break;
		out->driver_version[i] = make_printable(c);
	}
	usage_mb = get_dword(message, VF2PF_FB_USAGE_MB);
	out->guest_fb_usage_bytes = vgpu_min_u64((uint64_t)usage_mb << 20, vf->config.vram_bytes);
}
HW_STATIC_ASSERT(VF2PF_DRIVER_VERSION_BYTES <= VGPU_PF_NAME_BYTES);
