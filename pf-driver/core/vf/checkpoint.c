// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Writes and loads the checkpoint in PF VRAM. The checkpoint has what a new core needs after the
 * end of this core, and cannot read from registers or VF page tables: one record of all VFs, and
 * one record of the run table. Each record has two copies, and each write replaces the older copy.
 * A copy has a version, a sequence number and a CRC-32C, and the newest valid copy counts. So a
 * torn write loses only the newest change, never the record.
 *
 * The record of the run table leaves out the unused part of entries[]: contracts, weights and gaps
 * directly follow the last used entry. Most writes skip the words that the copy already holds;
 * every FULL_WRITE_INTERVAL-th write of a copy writes all words.
 */
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/core/resource/pf_vram.h"

#define CHECKPOINT_MAGIC   0x4a475056u /* "VPGJ" */
#define CHECKPOINT_VERSION 3u

struct checkpoint_head {
	uint32_t magic;
	uint32_t version;
	uint64_t seq;
	uint32_t bytes; /* length of the record that follows */
	uint32_t crc;	/* CRC-32C of the record, then of seq */
};

/* one VF in the record of the VFs; later cores read this struct, so keep its layout */
struct checkpoint_vf {
	uint8_t state; /* enum vgpu_pf_vf_state */
	uint8_t driver_loaded;
	uint8_t full_access; /* vgpu_vf_access.granted */
	uint8_t last_error;  /* enum vgpu_pf_reason */
	uint32_t generation;
	struct vgpu_vf_config config;
	uint32_t guard_limits[VGPU_GUARD_KINDS];
	uint8_t guard_paused;
	uint8_t deferred_request; /* enum mailbox_to_pf; 0: none */
	uint8_t reset_message; /* message of the guest that the core answers when the reset is done;
				  0: none */
	uint8_t is_client_flr_pending; /* as in struct vgpu_vf_reset */
	uint8_t reserved[52];
};
HW_ASSERT_SIZE(struct checkpoint_vf, 128);

struct checkpoint_vfs {
	struct checkpoint_head head;
	struct checkpoint_vf vfs[VGPU_PF_MAX_VFS];
};
HW_STATIC_ASSERT(sizeof(struct checkpoint_vfs) <= PF_VRAM_CHECKPOINT_BYTES);
HW_STATIC_ASSERT(sizeof(struct checkpoint_head) + sizeof(struct vgpu_pf_run_table) <=
		 PF_VRAM_RUN_TABLE_BYTES);
HW_STATIC_ASSERT(PF_VRAM_RUN_TABLE_BYTES <= VGPU_PF_SCRATCH_BYTES);
HW_STATIC_ASSERT(PF_VRAM_RUN_TABLE_BYTES <= VGPU_PF_RECORD_BYTES);

/* one in so many writes of a copy writes all words, in case a word in VRAM has changed */
#define FULL_WRITE_INTERVAL 64u

/* Mark the record of the VFs out of date, so that vgpu_pf_checkpoint_flush() writes the record. */
void vgpu_pf_checkpoint_mark(struct vgpu_pf *pf)
{
	pf->checkpoint.is_dirty = true;
}

static uint32_t record_crc(const struct checkpoint_head *head)
{
	uint32_t crc = vgpu_pf_text_crc32c(0, head + 1, head->bytes);

	return vgpu_pf_text_crc32c(crc, &head->seq, sizeof(head->seq));
}

/* Forget what PF VRAM holds, so that the next write of each copy writes all words. */
void vgpu_pf_checkpoint_invalidate(struct vgpu_pf *pf)
{
	for (uint32_t copy = 0; copy < 2; copy++) {
		pf->checkpoint.vf_records[copy].known = 0;
		pf->checkpoint.table_records[copy].known = 0;
	}
}

/* rounds a length up to whole words; the padding after a record may have any value */
static uint32_t round_up_to_words(uint32_t bytes)
{
	return (bytes + VGPU_VRAM_WORD_BYTES - 1) / VGPU_VRAM_WORD_BYTES * VGPU_VRAM_WORD_BYTES;
}

/*
 * Completes the head of the record in pf->scratch, and writes head and record to one of the two
 * copies. offset: of the first copy in PF VRAM; stride: from one copy to the other; seq: number of
 * this write, which selects the copy; bytes: length of the record after its head; copies: what the
 * core knows about both copies. Returns 0 or negative errno.
 */
static int write_record(struct vgpu_pf *pf, uint64_t offset, uint64_t stride, uint64_t seq,
			uint32_t bytes, struct vgpu_pf_record *copies)
{
	struct checkpoint_head *head = (void *)pf->scratch;
	struct vgpu_pf_record *copy = &copies[seq & 1];
	uint32_t end = round_up_to_words((uint32_t)sizeof(*head) + bytes);
	int error;

	head->magic = CHECKPOINT_MAGIC;
	head->version = CHECKPOINT_VERSION;
	head->seq = seq;
	head->bytes = bytes;
	head->crc = record_crc(head);
	/* the writes alternate between the copies, so seq / 2 counts the writes of this copy */
	if (seq / 2 % FULL_WRITE_INTERVAL == 0)
		copy->known = 0;
	error = vgpu_pf_vram_write_words(pf, offset + (seq & 1) * stride, pf->scratch, end,
					 copy->contents, copy->known);
	if (error) {
		copy->known = 0;
		return error;
	}
	memcpy(copy->contents, pf->scratch, end);
	if (copy->known < end)
		copy->known = end;
	return 0;
}

/* returns the state that a new core must find in the checkpoint */
static uint8_t state_of(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	/* a new core cannot continue the RESTORE */
	if (vgpu_pf_stream_is_partly_restored(pf, vf))
		return VGPU_PF_VF_STOPPED;
	/* a new core asks the device which VF is in the engine */
	return (uint8_t)(vf->state == VGPU_PF_VF_RUNNING ? VGPU_PF_VF_READY : vf->state);
}

static void encode_vf(const struct vgpu_pf *pf, const struct vgpu_vf *vf, struct checkpoint_vf *out)
{
	memset(out, 0, sizeof(*out));
	out->state = state_of(pf, vf);
	out->driver_loaded = vf->control.driver_loaded;
	out->full_access = vf->access.granted;
	out->last_error = (uint8_t)vf->last_error;
	out->generation = vf->generation;
	out->config = vf->config;
	out->guard_paused = vf->guard.paused;
	out->deferred_request = (uint8_t)vf->mailbox.deferred_request;
	out->reset_message = (uint8_t)vgpu_pf_reset_pending_message(vf);
	out->is_client_flr_pending = vf->reset.is_client_flr_pending;
	memcpy(out->guard_limits, vf->guard.limits, sizeof(out->guard_limits));
}

static void decode_vf(const struct checkpoint_vf *in, struct vgpu_vf *vf)
{
	vf->state = in->state < VGPU_PF_VF_STATES ? in->state : VGPU_PF_VF_MISMATCH;
	vf->control.driver_loaded = in->driver_loaded != 0;
	vf->access.granted = in->full_access != 0;
	vf->last_error = in->last_error;
	vf->generation = in->generation;
	vf->config = in->config;
	vf->guard.paused = in->guard_paused != 0;
	vf->mailbox.deferred_request = in->deferred_request;
	vf->reset.pending_message = in->reset_message;
	vf->reset.is_client_flr_pending = in->is_client_flr_pending != 0;
	memcpy(vf->guard.limits, in->guard_limits, sizeof(in->guard_limits));
}

static void flush_vfs(struct vgpu_pf *pf)
{
	struct checkpoint_vfs *record = (void *)pf->scratch;

	memset(record, 0, sizeof(*record));
	for (uint32_t i = 0; i < VGPU_PF_MAX_VFS; i++)
		encode_vf(pf, &pf->vfs[i + 1], &record->vfs[i]);
	if (write_record(pf, PF_VRAM_CHECKPOINT, PF_VRAM_CHECKPOINT_BYTES, pf->checkpoint.seq + 1,
			 sizeof(*record) - sizeof(record->head), pf->checkpoint.vf_records))
		return;
	pf->checkpoint.seq++;
	pf->checkpoint.is_dirty = false;
}

/* length of a run table up to the end of its last used entry */
static uint32_t table_bytes(const struct vgpu_pf_run_table *table)
{
	return (uint32_t)(offsetof(struct vgpu_pf_run_table, entries) +
			  table->count * sizeof(table->entries[0]));
}

/* the terms of a table: contracts, then weights and gaps */
#define TERMS_OFFSET offsetof(struct vgpu_pf_run_table, contracts)
#define TERMS_BYTES  ((uint32_t)(sizeof(struct vgpu_pf_run_table) - TERMS_OFFSET))

static uint8_t *terms_of(struct vgpu_pf_run_table *table)
{
	return (uint8_t *)table + TERMS_OFFSET;
}

/* moves the terms to the end of the used entries; returns the length of the record */
static uint32_t pack_terms(struct vgpu_pf_run_table *table)
{
	uint32_t bytes = table_bytes(table);

	memmove((uint8_t *)table + bytes, terms_of(table), TERMS_BYTES);
	return bytes + TERMS_BYTES;
}

/* moves the terms back to their place in the struct */
static void unpack_terms(struct vgpu_pf_run_table *table)
{
	memmove(terms_of(table), (uint8_t *)table + table_bytes(table), TERMS_BYTES);
}

static void flush_table(struct vgpu_pf *pf)
{
	struct vgpu_pf_run_table *table = (void *)(pf->scratch + sizeof(struct checkpoint_head));

	vgpu_pf_run_tables_get(pf, table);
	if (write_record(pf, PF_VRAM_RUN_TABLE, PF_VRAM_RUN_TABLE_BYTES,
			 pf->checkpoint.table_seq + 1, pack_terms(table),
			 pf->checkpoint.table_records))
		return;
	pf->checkpoint.table_seq++;
	pf->checkpoint.is_table_dirty = false;
}

/* Write the dirty records. If a write fails, or there is no device, a record stays dirty. */
void vgpu_pf_checkpoint_flush(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	if (pf->checkpoint.is_dirty)
		flush_vfs(pf);
	if (pf->checkpoint.is_table_dirty)
		flush_table(pf);
}

/* reads one copy into pf->scratch; returns false if the copy cannot be read or is not valid */
static bool read_copy(struct vgpu_pf *pf, uint64_t offset, uint32_t stride)
{
	struct checkpoint_head *head = (void *)pf->scratch;

	if (pf->os->ops->vram_read(pf->os, offset, pf->scratch, stride))
		return false;
	return head->magic == CHECKPOINT_MAGIC && head->version == CHECKPOINT_VERSION &&
	       head->bytes <= stride - sizeof(*head) && head->crc == record_crc(head);
}

/* reads the newest valid copy into pf->scratch; returns its sequence number, 0 if none is valid */
static uint64_t read_record(struct vgpu_pf *pf, uint64_t offset, uint32_t stride)
{
	struct checkpoint_head *head = (void *)pf->scratch;
	uint64_t seq[2] = {0, 0};
	uint32_t newer;

	for (uint32_t copy = 0; copy < 2; copy++)
		if (read_copy(pf, offset + copy * (uint64_t)stride, stride))
			seq[copy] = head->seq;
	if (seq[0] == 0 && seq[1] == 0)
		return 0;
	newer = seq[1] > seq[0];
	return read_copy(pf, offset + newer * (uint64_t)stride, stride) ? seq[newer] : 0;
}

/*
 * Loads the run table, unless has_vfs is false: then only the sequence numbers of later tables
 * continue from the record's, because otherwise the next core would take the record for newer.
 */
static void load_table(struct vgpu_pf *pf, bool has_vfs)
{
	struct checkpoint_head *head = (void *)pf->scratch;
	struct vgpu_pf_run_table *table = (void *)(head + 1);
	uint64_t seq = read_record(pf, PF_VRAM_RUN_TABLE, PF_VRAM_RUN_TABLE_BYTES);

	if (seq == 0)
		return;
	pf->checkpoint.table_seq = seq;
	if (!has_vfs || head->bytes < offsetof(struct vgpu_pf_run_table, entries) ||
	    table->count > VGPU_PF_TABLE_ENTRIES || head->bytes != table_bytes(table) + TERMS_BYTES)
		return;
	unpack_terms(table);
	vgpu_pf_run_tables_load(pf, table);
}

/* the event that leads to a state, for the states that DEVICE_LOST keeps; NONE: other states */
static const enum vgpu_vf_event lost_events[VGPU_PF_VF_STATES] = {
	[VGPU_PF_VF_PAUSED] = VGPU_VF_EVENT_PAUSE,
	[VGPU_PF_VF_STOPPED] = VGPU_VF_EVENT_STOP,
	[VGPU_PF_VF_QUARANTINED] = VGPU_VF_EVENT_QUARANTINE,
	[VGPU_PF_VF_SCRUBBING] = VGPU_VF_EVENT_RELEASE,
};

/*
 * Loads a VF from the record. If this core has paused, stopped, quarantined or released the VF when
 * the device was lost already, the record does not say so, and the core does it again.
 */
static void load_vf(const struct checkpoint_vf *in, struct vgpu_vf *vf)
{
	enum vgpu_vf_event event = lost_events[vf->state];
	bool is_of_guard = vf->guard.paused || event == VGPU_VF_EVENT_QUARANTINE;
	bool must_repeat = event != VGPU_VF_EVENT_NONE && !vf->control.is_stopped_by_loss;

	decode_vf(in, vf);
	if (must_repeat && vgpu_pf_control_allows(vf, event))
		vgpu_vf_post(vf, event,
			     is_of_guard ? VGPU_PF_REASON_GUARD : VGPU_PF_REASON_OPERATOR);
}

/*
 * Load the VFs from their record. At the first attach, also load the run table if its record is
 * valid; later, the table in memory is the newest. Return: false if the record of the VFs is not
 * valid; then nothing was loaded.
 */
bool vgpu_pf_checkpoint_load(struct vgpu_pf *pf)
{
	struct checkpoint_vfs *record = (void *)pf->scratch;
	uint64_t seq = read_record(pf, PF_VRAM_CHECKPOINT, PF_VRAM_CHECKPOINT_BYTES);
	bool is_valid = seq != 0 && record->head.bytes == sizeof(*record) - sizeof(record->head);

	if (seq != 0)
		pf->checkpoint.seq = seq;
	for (uint32_t i = 0; is_valid && i < pf->device.total_vfs; i++)
		load_vf(&record->vfs[i], &pf->vfs[i + 1]);
	if (pf->was_attached)
		pf->checkpoint.is_table_dirty = true;
	else
		load_table(pf, is_valid);
	return is_valid;
}
