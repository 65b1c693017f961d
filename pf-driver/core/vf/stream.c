// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * SAVE writes a paused VF to a stream, and RESTORE (restore.c) fills a paused VF from a stream.
 * This file has SAVE and what all streams share. A stream of a VF has these parts:
 *
 *   head           identity and resources of the VF
 *   STATE          section with the device state, as the device serialises it
 *   VRAM or ZERO   sections for all VRAM in order: contents of a range of at most 1 MiB, or a range
 *                  that holds zeroes
 *   END            section without contents
 *
 * The head and each section have a CRC-32C. A stream is untrusted input: RESTORE checks the
 * checksums, and the order and the ranges of sections. If a RESTORE fails after it has changed the
 * VF, the core stops the VF, which then needs a reset.
 *
 * The data pass through one DMA buffer, in which a section's payload directly follows the section's
 * head. At first, the buffer has room for the state of all CUs of the device, each with as many
 * waves as it can hold. Queues that wait for a CU have state, too, so the buffer grows if the whole
 * state is longer. DUMP (top/dump.c) writes its text through such a buffer, without head and
 * sections.
 */
#include "pf-driver/core/vf/stream.h"
#include "pf-driver/hw/regs.h"

/* initial size of the buffer; not the maximum, because contiguous memory may be scarce */
static uint32_t buffer_bytes(const struct vgpu_pf *pf, enum vgpu_stream_kind kind)
{
	uint64_t bytes =
		VGPU_STREAM_BUFFER_BASE + (uint64_t)pf->device.cu_count * VGPU_STREAM_BUFFER_OF_CU;

	if (kind == VGPU_STREAM_DUMP)
		return VGPU_STREAM_BUFFER_DUMP;
	return (uint32_t)vgpu_min_u64(bytes, VGPU_STREAM_BUFFER_MAX);
}

/* Compute the checksum of a section in the buffer. */
uint32_t vgpu_pf_stream_crc(struct vgpu_pf *pf, const struct section_head *head)
{
	uint32_t bytes = head->kind == SECTION_STATE || head->kind == SECTION_VRAM
				 ? (uint32_t)head->bytes
				 : 0;
	uint32_t crc = vgpu_pf_text_crc32c(0, vgpu_pf_stream_at(pf, PAYLOAD_OFFSET), bytes);

	crc = vgpu_pf_text_crc32c(crc, &head->kind, sizeof(head->kind));
	return vgpu_pf_text_crc32c(crc, &head->offset, sizeof(head->offset) + sizeof(head->bytes));
}

/*
 * End the stream with 0, or with an error whose text is in pf->requests.message. After an error,
 * stop a partly restored VF.
 */
void vgpu_pf_stream_finish(struct vgpu_pf *pf, int error)
{
	struct vgpu_pf_stream_job *job = &pf->stream;
	struct vgpu_vf *vf = &pf->vfs[job->vf];
	bool is_partly_restored = vgpu_pf_stream_is_partly_restored(pf, vf);

	job->kind = VGPU_STREAM_NONE;
	if (job->buffer.cpu)
		pf->os->ops->dma_free(pf->os, &job->buffer);
	if (job->request)
		job->request->bytes = job->bytes;
	job->request = NULL;
	/* the restore is complete: the checkpoint no longer has to say that the VF is stopped */
	if (is_partly_restored && !error)
		vgpu_pf_checkpoint_mark(pf);
	else if (is_partly_restored)
		vgpu_vf_post(vf, VGPU_VF_EVENT_STOP, VGPU_PF_REASON_NONE);
	vgpu_pf_reply_add(pf, job->token, error, error ? pf->requests.message : "");
}

/* End the stream with an error; what: the cause, for the message. */
void vgpu_pf_stream_fail(struct vgpu_pf *pf, int error, const char *what)
{
	vgpu_pf_text_fail(pf, error, "VF%u: stream: %s (at byte %llu)", pf->stream.vf, what,
			  LLU(pf->stream.bytes));
	vgpu_pf_stream_finish(pf, error);
}

/*
 * Make room in the buffer for a payload of `bytes` bytes; the contents are lost. Return: false if
 * this failed, which has ended the stream.
 */
bool vgpu_pf_stream_grow(struct vgpu_pf *pf, uint64_t bytes)
{
	struct vgpu_os_dma *buffer = &pf->stream.buffer;

	if (bytes > VGPU_STREAM_BUFFER_MAX - PAYLOAD_OFFSET) {
		vgpu_pf_text_fail(pf, -E2BIG,
				  "VF%u: stream: device state of %llu bytes is too large",
				  pf->stream.vf, LLU(bytes));
		vgpu_pf_stream_finish(pf, -E2BIG);
		return false;
	}
	/* free the old buffer first: memory may not suffice for both */
	pf->os->ops->dma_free(pf->os, buffer);
	if (pf->os->ops->dma_alloc(pf->os, PAYLOAD_OFFSET + (uint32_t)bytes, buffer)) {
		buffer->cpu = NULL;
		vgpu_pf_stream_fail(pf, -ENOMEM, "no memory for the device state");
		return false;
	}
	return true;
}

static void request_state(struct vgpu_pf *pf);

/* True if SAVE_STATE failed for lack of room; then *bytes is the room that SAVE_STATE needs. */
static bool needs_room(struct vgpu_pf *pf, uint64_t *bytes)
{
	/*
	 * if buffer.cpu is NULL, resource/bulk.c has kept the memory for an operation that it
	 * abandoned, and the device may not have set SIZE
	 */
	if (pf->stream.kind != VGPU_STREAM_SAVE || pf->stream.step != STEP_STATE ||
	    !pf->stream.buffer.cpu)
		return false;
	*bytes = vgpu_pf_device_read(pf, REG_VGPU_OP_SIZE_LO);
	return *bytes > vgpu_pf_stream_room(pf) && *bytes != UINT32_MAX;
}

static void handle_device_done(struct vgpu_pf *pf, uint32_t owner, int error)
{
	uint64_t needed;

	if (pf->stream.kind == VGPU_STREAM_NONE || pf->stream.vf != owner)
		return;
	pf->stream.is_waiting_device = false;
	if (error == -EIO && needs_room(pf, &needed)) {
		if (vgpu_pf_stream_grow(pf, needed))
			request_state(pf);
	} else if (error) {
		vgpu_pf_stream_fail(pf, error, "the operation on the device failed");
	} else {
		vgpu_pf_stream_advance(pf);
	}
}

/* Have the device execute an operation on the buffer; handle_device_done() then continues. */
void vgpu_pf_stream_submit(struct vgpu_pf *pf, struct vgpu_bulk_op *op)
{
	int error;

	op->owner = pf->stream.vf;
	op->memory = &pf->stream.buffer;
	op->done = handle_device_done;
	error = vgpu_pf_bulk_submit(pf, op);
	if (error)
		vgpu_pf_stream_fail(pf, error, "the device is busy or gone");
	else
		pf->stream.is_waiting_device = true;
}

/* ---- save ---- */

/* puts the head before the payload, if any, in the buffer; move_data() then writes both */
static void put_section(struct vgpu_pf *pf, enum section_kind kind, uint64_t offset, uint64_t bytes)
{
	struct section_head *head = vgpu_pf_stream_section(pf);
	bool has_payload = kind == SECTION_STATE || kind == SECTION_VRAM;

	head->kind = kind;
	head->offset = offset;
	head->bytes = bytes;
	head->crc = vgpu_pf_stream_crc(pf, head);
	pf->stream.first = SECTION_OFFSET;
	pf->stream.filled = PAYLOAD_OFFSET + (has_payload ? (uint32_t)bytes : 0);
}

static void save_head(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct stream_head *head = (void *)vgpu_pf_stream_at(pf, 0);

	memset(head, 0, sizeof(*head));
	head->magic = STREAM_MAGIC;
	head->version = STREAM_VERSION;
	head->driver_loaded = vf->control.driver_loaded;
	head->vram_bytes = vf->config.vram_bytes;
	head->cu_mask = vf->config.cu_mask;
	head->doorbell_pages = vf->config.doorbell_pages;
	head->device_cus = pf->device.cu_count;
	memcpy(head->uuid, vf->config.uuid, sizeof(head->uuid));
	head->crc = vgpu_pf_text_crc32c(0, head, offsetof(struct stream_head, crc));
	pf->stream.first = 0;
	pf->stream.filled = sizeof(*head);
	pf->stream.step = STEP_STATE;
}

static void request_state(struct vgpu_pf *pf)
{
	struct vgpu_bulk_op op = {.opcode = VGPU_OP_SAVE_STATE, .vf = pf->stream.vf};

	op.dst = pf->stream.buffer.bus + PAYLOAD_OFFSET;
	op.bytes = vgpu_pf_stream_room(pf);
	vgpu_pf_stream_submit(pf, &op);
}

static void put_state(struct vgpu_pf *pf)
{
	/* the number of bytes that the device wrote */
	uint64_t bytes = vgpu_pf_device_read(pf, REG_VGPU_OP_SIZE_LO);

	if (bytes > vgpu_pf_stream_room(pf)) {
		vgpu_pf_stream_fail(pf, -EIO, "the device reports more state than fits");
		return;
	}
	put_section(pf, SECTION_STATE, 0, bytes);
}

static uint64_t chunk_bytes(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_min_u64(CHUNK_BYTES, vf->config.vram_bytes - pf->stream.vram_offset);
}

static void request_chunk(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct vgpu_bulk_op op = {.opcode = VGPU_OP_DMA_OUT, .vf = vf->number};

	op.src = pf->stream.vram_offset;
	op.dst = pf->stream.buffer.bus + PAYLOAD_OFFSET;
	op.bytes = chunk_bytes(pf, vf);
	vgpu_pf_stream_submit(pf, &op);
}

/* bytes: a multiple of 8 */
static bool is_zero(const uint8_t *data, uint64_t bytes)
{
	uint64_t word, any = 0;

	for (uint64_t i = 0; i < bytes; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		any |= word;
	}
	return any == 0;
}

static void put_chunk(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t bytes = chunk_bytes(pf, vf);
	enum section_kind kind =
		is_zero(vgpu_pf_stream_at(pf, PAYLOAD_OFFSET), bytes) ? SECTION_ZERO : SECTION_VRAM;

	put_section(pf, kind, pf->stream.vram_offset, bytes);
	pf->stream.vram_offset += bytes;
}

/* does the next step of a SAVE; has_answer: true if the device has put its data into the buffer */
static void save_step(struct vgpu_pf *pf, struct vgpu_vf *vf, bool has_answer)
{
	struct vgpu_pf_stream_job *job = &pf->stream;

	switch (job->step) {
	case STEP_HEAD:
		save_head(pf, vf);
		return;
	case STEP_STATE:
		if (!has_answer) {
			request_state(pf);
			return;
		}
		job->step = STEP_SECTION;
		put_state(pf);
		return;
	case STEP_SECTION:
		if (job->vram_offset == vf->config.vram_bytes) {
			job->step = STEP_END;
			put_section(pf, SECTION_END, 0, 0);
		} else if (has_answer) {
			put_chunk(pf, vf);
		} else {
			request_chunk(pf, vf);
		}
		return;
	default: /* STEP_END */
		vgpu_pf_stream_finish(pf, 0);
	}
}

/* ---- save and restore ---- */

/* moves bytes between buffer and file; returns false if the stream must wait or has failed */
static bool move_data(struct vgpu_pf *pf)
{
	struct vgpu_pf_stream_job *job = &pf->stream;
	uint32_t bytes = job->filled - job->first;
	int64_t moved =
		job->kind == VGPU_STREAM_RESTORE
			? pf->os->ops->stream_read(pf->os, vgpu_pf_stream_at(pf, job->first), bytes)
			: pf->os->ops->stream_write(pf->os, vgpu_pf_stream_at(pf, job->first),
						    bytes);

	if (moved == -EAGAIN)
		return false;
	if (moved <= 0 || moved > bytes) {
		vgpu_pf_stream_fail(pf, moved < 0 ? (int)moved : -EBADMSG,
				    "the file failed or ended too early");
		return false;
	}
	job->first += (uint32_t)moved;
	job->bytes += (uint64_t)moved;
	return true;
}

/*
 * does steps of the stream until the stream ends, or must wait for the device or the file;
 * has_answer: true if the device has finished the operation that the stream waited for
 */
static void advance(struct vgpu_pf *pf, bool has_answer)
{
	struct vgpu_vf *vf = &pf->vfs[pf->stream.vf];

	while (pf->stream.kind != VGPU_STREAM_NONE && !pf->stream.is_waiting_device) {
		if (pf->stream.first < pf->stream.filled) {
			if (!move_data(pf))
				return;
			continue;
		}
		if (pf->stream.kind == VGPU_STREAM_DUMP) {
			vgpu_pf_stream_finish(pf, 0);
			return;
		}
		if (vf->state != VGPU_PF_VF_PAUSED || pf->stream.is_broken) {
			vgpu_pf_stream_fail(pf, -ECANCELED, "the VF was resumed or reset");
			return;
		}
		if (pf->stream.kind == VGPU_STREAM_SAVE)
			save_step(pf, vf, has_answer);
		else
			vgpu_pf_stream_restore_next(pf, vf, has_answer);
		has_answer = false;
	}
}

/* Continue the stream: the device has finished its operation, or a dump is in the buffer. */
void vgpu_pf_stream_advance(struct vgpu_pf *pf)
{
	advance(pf, true);
}

/* Continue the stream, because its file can move data again. */
void vgpu_pf_stream_move(struct vgpu_pf *pf)
{
	/* a stream without bytes to move waits for the device; handle_device_done() continues it */
	if (pf->stream.kind != VGPU_STREAM_NONE && pf->stream.first < pf->stream.filled)
		advance(pf, false);
}

/*
 * Start a stream. vf: 0 for a DUMP. request: the payload, whose `bytes` the core sets at the end.
 * The caller must then call advance() or vgpu_pf_stream_advance(); the caller of a DUMP must fill
 * the buffer first. Return: 0, or -ENOMEM with a message.
 */
int vgpu_pf_stream_begin(struct vgpu_pf *pf, enum vgpu_stream_kind kind, uint32_t vf,
			 struct vgpu_pf_stream *request, uint64_t token)
{
	struct vgpu_pf_stream_job *job = &pf->stream;

	memset(job, 0, sizeof(*job));
	if (pf->os->ops->dma_alloc(pf->os, buffer_bytes(pf, kind), &job->buffer))
		return vgpu_pf_text_fail(pf, -ENOMEM, "no memory for the stream's buffer");
	job->kind = kind;
	job->vf = vf;
	job->request = request;
	job->token = token;
	return 0;
}

static int begin_vf(struct vgpu_pf *pf, enum vgpu_stream_kind kind, const struct vgpu_pf_call *call)
{
	const struct vgpu_vf *vf = call->vf;
	int error;

	if (vf->state != VGPU_PF_VF_PAUSED)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: is %s; pause it first", vf->number,
					 vgpu_pf_control_state_name(vf->state));
	/* the reset takes the state of the VF */
	if (pf->device_reset.is_under_way)
		return vgpu_pf_text_fail(pf, -EBUSY, "the device is being reset; try again");
	error = vgpu_pf_stream_begin(pf, kind, vf->number, call->payload, call->token);
	if (error)
		return error;
	if (kind == VGPU_STREAM_RESTORE)
		vgpu_pf_stream_expect(pf, 0, sizeof(struct stream_head));
	advance(pf, false);
	return -EINPROGRESS;
}

/*
 * Write a paused VF to the request's stream. The core sets payload->bytes at the end. Return:
 * -EINPROGRESS; or -EINVAL if the VF is not paused, -EBUSY if the device is being reset, or
 * -ENOMEM. Errors have a message.
 */
int vgpu_pf_stream_save(struct vgpu_pf *pf, const struct vgpu_pf_call *call)
{
	return begin_vf(pf, VGPU_STREAM_SAVE, call);
}

/*
 * Fill a paused VF from the request's stream. The core sets payload->bytes at the end. Return: as
 * vgpu_pf_stream_save().
 */
int vgpu_pf_stream_restore(struct vgpu_pf *pf, const struct vgpu_pf_call *call)
{
	return begin_vf(pf, VGPU_STREAM_RESTORE, call);
}

/* True if a RESTORE of this VF is in progress. */
bool vgpu_pf_stream_is_restoring(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return pf->stream.kind == VGPU_STREAM_RESTORE && pf->stream.vf == vf->number;
}

/* True if a RESTORE has changed the VF, so that the VF must stop if the stream fails now. */
bool vgpu_pf_stream_is_partly_restored(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_stream_is_restoring(pf, vf) && pf->stream.is_changed &&
	       vgpu_pf_control_allows(vf, VGPU_VF_EVENT_STOP);
}

/*
 * Record that the VF has left its pause, or that its client has reset it in its pause. Then a SAVE
 * or RESTORE of the VF fails at its next step, even if the VF is paused again.
 */
void vgpu_pf_stream_break(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	if (pf->stream.vf == vf->number)
		pf->stream.is_broken = true;
}

/* Forget that a RESTORE has changed the VF: a reset begins, so a failure need not stop the VF. */
void vgpu_pf_stream_forget(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	if (vgpu_pf_stream_is_restoring(pf, vf))
		pf->stream.is_changed = false;
}

/*
 * End a SAVE or RESTORE with an error, because the device is detached or will be reset. A DUMP
 * continues.
 */
void vgpu_pf_stream_abort(struct vgpu_pf *pf, int error)
{
	if (pf->stream.kind == VGPU_STREAM_SAVE || pf->stream.kind == VGPU_STREAM_RESTORE)
		vgpu_pf_stream_fail(pf, error, "the device was lost or reset");
}
