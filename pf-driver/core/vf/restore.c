// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RESTORE fills a paused VF from a stream that SAVE wrote; the stream is untrusted input. stream.c
 * explains the stream, and stream.h defines its format.
 */
#include "pf-driver/core/vf/stream.h"
#include "pf-driver/hw/regs.h"

/* returns what is wrong with the head of a stream, as a text; NULL: nothing */
static const char *check_head(const struct vgpu_pf *pf, const struct vgpu_vf *vf,
			      const struct stream_head *head)
{
	if (head->magic != STREAM_MAGIC || head->version != STREAM_VERSION)
		return "not a stream of a VF, or a stream of another version";
	if (head->crc != vgpu_pf_text_crc32c(0, head, offsetof(struct stream_head, crc)))
		return "the head is damaged";
	if (head->vram_bytes != vf->config.vram_bytes)
		return "the VF has another VRAM size; provision it like the saved one";
	if (head->device_cus != pf->device.cu_count || head->cu_mask != vf->config.cu_mask)
		return "the VF has other compute units; provision it like the saved one";
	return NULL;
}

/* as check_head(), for the head of a section */
static const char *check_section(const struct vgpu_pf *pf, const struct vgpu_vf *vf,
				 const struct section_head *head)
{
	bool is_vram = head->kind == SECTION_VRAM || head->kind == SECTION_ZERO;

	if (head->kind < SECTION_STATE || head->kind > SECTION_END)
		return "unknown section";
	if ((head->kind == SECTION_STATE) != (pf->stream.step == STEP_STATE))
		return "the device state is not the first section, or comes twice";
	/* offset is vram_offset, which is at most vram_bytes: the subtraction does not wrap */
	if (is_vram && (head->offset != pf->stream.vram_offset ||
			head->bytes > vf->config.vram_bytes - head->offset || head->bytes == 0))
		return "a section is not next to the previous one, or lies outside the VF's VRAM";
	if (head->kind == SECTION_VRAM && head->bytes > CHUNK_BYTES)
		return "a section is too long";
	if (head->kind == SECTION_STATE && head->bytes > VGPU_STREAM_BUFFER_MAX - PAYLOAD_OFFSET)
		return "the device state is too long";
	if (head->kind == SECTION_END && pf->stream.vram_offset != vf->config.vram_bytes)
		return "the stream ends too early";
	return NULL;
}

static void restore_head(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct stream_head *head = (void *)vgpu_pf_stream_at(pf, 0);
	const char *wrong = check_head(pf, vf, head);

	if (wrong) {
		vgpu_pf_stream_fail(pf, -EBADMSG, wrong);
		return;
	}
	pf->stream.driver_loaded = head->driver_loaded != 0;
	pf->stream.step = STEP_STATE;
	vgpu_pf_stream_expect(pf, SECTION_OFFSET, sizeof(struct section_head));
}

static void restore_section(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct section_head head = *vgpu_pf_stream_section(pf);
	const char *wrong = check_section(pf, vf, &head);
	bool has_payload = head.kind == SECTION_STATE || head.kind == SECTION_VRAM;

	if (wrong) {
		vgpu_pf_stream_fail(pf, -EBADMSG, wrong);
		return;
	}
	if (has_payload && head.bytes > vgpu_pf_stream_room(pf)) {
		if (!vgpu_pf_stream_grow(pf, head.bytes))
			return;
		/* the new buffer does not have the section's head yet */
		*vgpu_pf_stream_section(pf) = head;
	}
	pf->stream.step = STEP_PAYLOAD;
	vgpu_pf_stream_expect(pf, PAYLOAD_OFFSET, has_payload ? (uint32_t)head.bytes : 0);
}

/* the bulk operation that applies a section to the VF */
static const uint32_t section_ops[] = {
	[SECTION_STATE] = VGPU_OP_LOAD_STATE,
	[SECTION_VRAM] = VGPU_OP_DMA_IN,
	[SECTION_ZERO] = VGPU_OP_SCRUB_VRAM,
};

/* prepares the first change of the VF: sets driver_loaded as in the saved VF, ends full access */
static void begin_change(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (pf->stream.is_changed)
		return;
	pf->stream.is_changed = true;
	vf->control.driver_loaded = pf->stream.driver_loaded;
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
	/* until RESTORE ends, the checkpoint says STOPPED (state_of() in checkpoint.c) */
	vgpu_pf_checkpoint_mark(pf);
	vgpu_pf_checkpoint_flush(pf);
}

static void apply_section(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	const struct section_head *head = vgpu_pf_stream_section(pf);
	struct vgpu_bulk_op op = {.vf = pf->stream.vf, .bytes = head->bytes};

	if (head->crc != vgpu_pf_stream_crc(pf, head)) {
		vgpu_pf_stream_fail(pf, -EBADMSG, "a section is damaged");
		return;
	}
	if (head->kind == SECTION_END) {
		vgpu_pf_stream_finish(pf, 0);
		return;
	}
	op.opcode = section_ops[head->kind];
	op.src = pf->stream.buffer.bus + PAYLOAD_OFFSET;
	op.dst = head->offset;
	if (head->kind != SECTION_STATE)
		pf->stream.vram_offset += head->bytes;
	begin_change(pf, vf);
	vgpu_pf_stream_submit(pf, &op);
}

/*
 * Do the next step of a RESTORE. The input of this step is in the buffer. has_answer: true if the
 * device has applied the section in the buffer.
 */
void vgpu_pf_stream_restore_next(struct vgpu_pf *pf, struct vgpu_vf *vf, bool has_answer)
{
	switch (pf->stream.step) {
	case STEP_HEAD:
		restore_head(pf, vf);
		return;
	case STEP_STATE:
	case STEP_SECTION:
		restore_section(pf, vf);
		return;
	default: /* STEP_PAYLOAD */
		if (!has_answer) {
			apply_section(pf, vf);
			return;
		}
		pf->stream.step = STEP_SECTION;
		vgpu_pf_stream_expect(pf, SECTION_OFFSET, sizeof(struct section_head));
	}
}
