/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions for the resources of a VF, for the data that the PF and the guest exchange in the VF's
 * VRAM, and for bulk operations of the device. The functions are grouped by file; each function is
 * documented where it is defined.
 */
#ifndef VGPU_CORE_RESOURCE_PARTS_H
#define VGPU_CORE_RESOURCE_PARTS_H

#include "pf-driver/core/base/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

VGPU_C_BEGIN

/* vram.c */
void vgpu_pf_vram_init(struct vgpu_pf *pf);
int vgpu_pf_vram_claim(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t bytes);
void vgpu_pf_vram_release(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_vram_first(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t *offset);
int vgpu_pf_vram_read_vf(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t offset, void *data,
			 uint32_t bytes);
#define VGPU_VRAM_WORD_BYTES 8u /* granularity of vgpu_pf_vram_write_words() */
int vgpu_pf_vram_write_words(struct vgpu_pf *pf, uint64_t offset, const uint8_t *data,
			     uint32_t bytes, const uint8_t *old_data, uint32_t known);
bool vgpu_pf_vram_is_clean(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_vram_write_vf(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t offset,
			  const void *data, uint32_t bytes);

/* vf_page_table.c */
int vgpu_pf_vf_page_table_write(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_commit(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_clear(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_vf_page_table_is_live(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* Let a VF use the first `pages` pages of its doorbell BAR (BAR2). Return: 0 or negative errno. */
static inline int vgpu_pf_doorbell_set(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t pages)
{
	return vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_DOORBELLS,
					 HW_PREP(VGPU_DOORBELLS, PAGES, pages));
}

/* vbios.c, pf2vf.c */
void vgpu_pf_vbios_build(uint8_t image[VGPU_PF_SCRATCH_BYTES], uint32_t vram_mb);
int vgpu_pf_vbios_write(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_pf2vf_write(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_pf2vf_read_guest(struct vgpu_pf *pf, const struct vgpu_vf *vf, struct vgpu_pf_vf *out);

/* bulk.c */
int vgpu_pf_bulk_submit(struct vgpu_pf *pf, const struct vgpu_bulk_op *op);
void vgpu_pf_bulk_poll(struct vgpu_pf *pf);
void vgpu_pf_bulk_abort(struct vgpu_pf *pf, int error);

VGPU_C_END

#endif
