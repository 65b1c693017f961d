// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The event ring: the core writes events into memory that clients map read-only. The core sets the
 * sequence number (seq) of an entry to 0, overwrites the entry, and writes the new seq last. So a
 * reader has a whole entry if it reads the expected seq both before and after it copies the entry.
 */
#include "pf-driver/core/base/parts.h"

static struct vgpu_pf_event_ring_head *ring_head(struct vgpu_pf *pf)
{
	return pf->params.event_ring;
}

static struct vgpu_pf_event *ring_entries(struct vgpu_pf *pf)
{
	return (void *)((uint8_t *)pf->params.event_ring + VGPU_PF_RING_EVENTS_OFFSET);
}

/* returns the number of entries of a ring of this size: the largest power of two that fits */
static uint32_t entries_that_fit(uint32_t bytes)
{
	uint64_t entries = (bytes - VGPU_PF_RING_EVENTS_OFFSET) / sizeof(struct vgpu_pf_event);

	return 1u << (63 - __builtin_clzll(entries));
}

/* Fill in the head of the ring, whose memory the platform has allocated. */
void vgpu_pf_event_init(struct vgpu_pf *pf)
{
	struct vgpu_pf_event_ring_head *head = ring_head(pf);

	head->entries = entries_that_fit(pf->params.event_ring_bytes);
	head->entry_bytes = sizeof(struct vgpu_pf_event);
	head->boot_id = pf->params.boot_id;
	head->next_seq = 1;
	pf->events.seq = 1;
}

/* Append a copy of an event; fill in its seq, its table_generation and, if 0, its time_ns. */
void vgpu_pf_event_push(struct vgpu_pf *pf, const struct vgpu_pf_event *event)
{
	struct vgpu_pf_event_ring_head *head = ring_head(pf);
	/*
	 * computed, not read from head->entries: the index must not depend on memory that the core
	 * shares, even though clients map this memory read-only
	 */
	uint32_t entries = entries_that_fit(pf->params.event_ring_bytes);
	struct vgpu_pf_event *slot = &ring_entries(pf)[(pf->events.seq - 1) & (entries - 1)];
	struct vgpu_pf_event copy = *event;

	copy.seq = 0;
	if (copy.time_ns == 0)
		copy.time_ns = vgpu_pf_timer_now(pf);
	copy.table_generation = pf->table_generation;
	__atomic_store_n(&slot->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((uint8_t *)slot + sizeof(slot->seq), (const uint8_t *)&copy + sizeof(copy.seq),
	       sizeof(copy) - sizeof(copy.seq));
	__atomic_store_n(&slot->seq, pf->events.seq, __ATOMIC_RELEASE);
	pf->events.seq++;
	__atomic_store_n(&head->next_seq, pf->events.seq, __ATOMIC_RELEASE);
	pf->events.has_new = true;
}

/* Append an event of a VF, or of the GPU (vf 0), without a duration. */
void vgpu_pf_event_simple(struct vgpu_pf *pf, enum vgpu_pf_event_type type, uint32_t vf,
			  uint64_t arg, uint64_t arg2)
{
	struct vgpu_pf_event event = {.type = type, .vf = vf, .arg = arg, .arg2 = arg2};

	vgpu_pf_event_push(pf, &event);
}
