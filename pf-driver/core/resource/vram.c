// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Gives the VRAM of the device to VFs in units of 16 MiB, except unit 0, which the PF owns. Reads
 * and writes VRAM for other files.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/core/resource/pf_vram.h"
#include "pf-driver/hw/vf_page_table.h"

/* Make all units free, except the PF's unit. */
void vgpu_pf_vram_init(struct vgpu_pf *pf)
{
	struct vgpu_range pf_unit = {0, 1};

	vgpu_pf_range_init(&pf->vram, (uint32_t)(pf->device.vram_bytes >> VGPU_VRAM_UNIT_SHIFT));
	vgpu_pf_range_reserve(&pf->vram, pf_unit, VGPU_RANGE_OWNER_PF);
}

/*
 * Give VRAM to a VF, in one piece if possible. bytes: a multiple of the unit, at most the aperture
 * and PF_VRAM_VF_MAX_BYTES. Return: 0, or -EINVAL or -ENOSPC with a message.
 */
int vgpu_pf_vram_claim(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t bytes)
{
	uint64_t limit = vgpu_min_u64(pf->device.aperture_bytes, PF_VRAM_VF_MAX_BYTES);
	uint64_t free_bytes = (uint64_t)vgpu_pf_range_free_units(&pf->vram) << VGPU_VRAM_UNIT_SHIFT;

	if (bytes == 0 || bytes % VGPU_VRAM_UNIT_BYTES)
		return vgpu_pf_text_fail(
			pf, -EINVAL,
			"VF%u: VRAM of %llu bytes is not a multiple of %llu MiB; round it up",
			vf->number, LLU(bytes), VGPU_VRAM_UNIT_BYTES >> 20);
	if (bytes > limit)
		return vgpu_pf_text_fail(
			pf, -EINVAL,
			"VF%u: VRAM of %llu MiB exceeds the aperture of %llu MiB; ask for less",
			vf->number, LLU(bytes >> 20), LLU(limit >> 20));
	if (bytes > free_bytes)
		return vgpu_pf_text_fail(
			pf, -ENOSPC,
			"VF%u: VRAM of %llu MiB wanted, %llu MiB free; release or shrink a VF",
			vf->number, LLU(bytes >> 20), LLU(free_bytes >> 20));
	return vgpu_pf_range_claim(&pf->vram, (uint32_t)(bytes >> VGPU_VRAM_UNIT_SHIFT),
				   (uint8_t)vf->number);
}

/* Free a VF's VRAM. */
void vgpu_pf_vram_release(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_range_release(&pf->vram, (uint8_t)vf->number);
}

/* Get the device VRAM offset of a VF's first byte. Return: false if the VF has no VRAM. */
bool vgpu_pf_vram_first(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t *offset)
{
	struct vgpu_range range = {0, 0};

	if (!vgpu_pf_range_next(&pf->vram, (uint8_t)vf->number, &range))
		return false;
	*offset = (uint64_t)range.first << VGPU_VRAM_UNIT_SHIFT;
	return true;
}

/*
 * Turns an offset in the VF's VRAM into an offset in device VRAM. Returns false if the VF has no
 * VRAM, or if the bytes are not all in the VF's first unit. The core needs no other unit, because
 * the first unit has the area that the PF shares with the guest's driver.
 */
static bool to_device_offset(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t *offset,
			     uint32_t bytes)
{
	uint64_t first;

	if (*offset >= VGPU_VRAM_UNIT_BYTES || bytes > VGPU_VRAM_UNIT_BYTES - *offset)
		return false;
	if (!vgpu_pf_vram_first(pf, vf, &first))
		return false;
	*offset += first;
	return true;
}

/*
 * Read from the first unit of a VF's VRAM. Return: 0; -ERANGE if the bytes are not all in this
 * unit, or the VF has no VRAM; or an error of the read.
 */
int vgpu_pf_vram_read_vf(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t offset, void *data,
			 uint32_t bytes)
{
	if (!to_device_offset(pf, vf, &offset, bytes))
		return -ERANGE;
	return pf->os->ops->vram_read(pf->os, offset, data, bytes);
}

static bool is_same_word(const uint8_t *word, const uint8_t *old_data)
{
	static const uint8_t zeroes[VGPU_VRAM_WORD_BYTES];

	return !memcmp(word, old_data ? old_data : zeroes, VGPU_VRAM_WORD_BYTES);
}

/*
 * Write to device VRAM, but skip the words that are known to be there already, because each write
 * may be a trapped access. offset: in bytes, in device VRAM. bytes: a multiple of
 * VGPU_VRAM_WORD_BYTES. old_data: the first `known` bytes of the old contents; NULL: the first
 * `known` bytes are zero. Return: 0 or negative errno.
 */
int vgpu_pf_vram_write_words(struct vgpu_pf *pf, uint64_t offset, const uint8_t *data,
			     uint32_t bytes, const uint8_t *old_data, uint32_t known)
{
	int error = 0;
	uint32_t to;

	/* writes words from `from` up to `to`, the next word that need not be written */
	for (uint32_t from = 0; !error && from < bytes; from = to) {
		for (to = from; to < bytes; to += VGPU_VRAM_WORD_BYTES)
			if (to + VGPU_VRAM_WORD_BYTES <= known &&
			    is_same_word(data + to, old_data ? old_data + to : NULL))
				break;
		if (to > from)
			error = pf->os->ops->vram_write(pf->os, offset + from, data + from,
							to - from);
		else
			to += VGPU_VRAM_WORD_BYTES;
	}
	return error;
}

/* Return: true if all units of a VF are clean, that is, known to hold zeroes. */
bool vgpu_pf_vram_is_clean(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct vgpu_range range = {0, 0};

	return !vgpu_pf_range_next_dirty(&pf->vram, (uint8_t)vf->number, &range);
}

/*
 * Write whole words to the first unit of a VF's VRAM. If all units of the VF are clean, skip the
 * words of the data that are zero; the caller must mark the units dirty after its last write.
 * Return: 0, -ERANGE as vgpu_pf_vram_read_vf(), or an error of the write.
 */
int vgpu_pf_vram_write_vf(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t offset,
			  const void *data, uint32_t bytes)
{
	if (!to_device_offset(pf, vf, &offset, bytes))
		return -ERANGE;
	return vgpu_pf_vram_write_words(pf, offset, data, bytes, NULL,
					vgpu_pf_vram_is_clean(pf, vf) ? bytes : 0);
}
