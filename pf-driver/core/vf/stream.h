/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Defines the format of the stream that SAVE writes and RESTORE reads, and the places of the
 * stream's head and sections in the DMA buffer (stream.c explains both). Declares the functions
 * that stream.c and restore.c share. This header is only for these two files and for a test that
 * makes streams.
 */
#ifndef VGPU_CORE_VF_STREAM_H
#define VGPU_CORE_VF_STREAM_H

#include "pf-driver/core/vf/parts.h"

VGPU_C_BEGIN

#define STREAM_MAGIC   0x3153465655504756ull /* "VGPUVFS1" */
#define STREAM_VERSION 1u
#define CHUNK_BYTES    0x100000u /* longest payload of a VRAM section */
#define PAYLOAD_OFFSET 4096u	 /* start of a payload in the buffer; page aligned for DMA */

enum section_kind {
	SECTION_STATE = 1, /* payload: the device state */
	SECTION_VRAM = 2,  /* payload: contents of a range of VRAM */
	SECTION_ZERO = 3,  /* no payload: a range of VRAM that holds zeroes */
	SECTION_END = 4,   /* no payload */
};

/*
 * the start of a stream; RESTORE requires a VF with the same vram_bytes and cu_mask, on a device
 * with device_cus CUs, and ignores doorbell_pages, uuid and reserved
 */
struct stream_head {
	uint64_t magic;
	uint32_t version;
	uint32_t driver_loaded; /* 0 or 1 */
	uint64_t vram_bytes;
	uint64_t cu_mask;
	uint32_t doorbell_pages;
	uint32_t device_cus; /* number of CUs of the device */
	uint8_t uuid[16];
	uint32_t reserved; /* 0 */
	uint32_t crc;	   /* CRC-32C of all fields above */
};
HW_ASSERT_SIZE(struct stream_head, 64);

struct section_head {
	uint32_t kind;	 /* enum section_kind */
	uint32_t crc;	 /* CRC-32C of payload, kind, offset and bytes */
	uint64_t offset; /* VRAM, ZERO: offset in the VF's VRAM; STATE, END: 0 */
	uint64_t bytes;	 /* length of the payload (STATE, VRAM) or of the range (ZERO); END: 0 */
};
HW_ASSERT_SIZE(struct section_head, 24);

/* offset of a section's head in the buffer, directly before the payload */
#define SECTION_OFFSET (PAYLOAD_OFFSET - (uint32_t)sizeof(struct section_head))

/* SAVE: what to put into the buffer next. RESTORE: what is being read into the buffer. */
enum stream_step {
	STEP_HEAD = 0, /* the head of the stream */
	STEP_STATE,    /* the first section, STATE; RESTORE: only the head of this section */
	STEP_SECTION,  /* a later section; RESTORE: only the head of this section */
	STEP_PAYLOAD,  /* RESTORE only: the payload of a section, until the device has used it */
	STEP_END,      /* SAVE only: nothing, because the section END is in the buffer */
};

/* the address of an offset in the buffer */
static inline uint8_t *vgpu_pf_stream_at(struct vgpu_pf *pf, uint32_t offset)
{
	return (uint8_t *)pf->stream.buffer.cpu + offset;
}

/* the longest payload that fits into the buffer */
static inline uint32_t vgpu_pf_stream_room(const struct vgpu_pf *pf)
{
	return pf->stream.buffer.bytes - PAYLOAD_OFFSET;
}

/* the head of the section in the buffer */
static inline struct section_head *vgpu_pf_stream_section(struct vgpu_pf *pf)
{
	return (struct section_head *)(void *)vgpu_pf_stream_at(pf, SECTION_OFFSET);
}

/* RESTORE: have the next bytes of the stream read to [first, first + bytes) of the buffer */
static inline void vgpu_pf_stream_expect(struct vgpu_pf *pf, uint32_t first, uint32_t bytes)
{
	pf->stream.first = first;
	pf->stream.filled = first + bytes;
}

/* stream.c and restore.c document these functions */
uint32_t vgpu_pf_stream_crc(struct vgpu_pf *pf, const struct section_head *head);
void vgpu_pf_stream_finish(struct vgpu_pf *pf, int error);
void vgpu_pf_stream_fail(struct vgpu_pf *pf, int error, const char *what);
bool vgpu_pf_stream_grow(struct vgpu_pf *pf, uint64_t bytes);
void vgpu_pf_stream_submit(struct vgpu_pf *pf, struct vgpu_bulk_op *op);
void vgpu_pf_stream_restore_next(struct vgpu_pf *pf, struct vgpu_vf *vf, bool has_answer);

VGPU_C_END

#endif
