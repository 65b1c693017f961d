// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The event ring is memory that the core writes and that clients map read-only. The core writes the
 * sequence number (seq) of an entry last: a reader that sees the seq sees the whole entry. While
 * the core overwrites an entry, its seq is 0.
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

/* returns the number of entries, a power of two */
static uint32_t entries_that_fit(uint32_t bytes)
{
	uint64_t entries = (bytes - VGPU_PF_RING_EVENTS_OFFSET) / sizeof(struct vgpu_pf_event);

	return 1u << (63 - __builtin_clzll(entries));
}

/* Lay out the ring in the platform's memory. */
void vgpu_pf_event_init(struct vgpu_pf *pf)
{
	struct vgpu_pf_event_ring_head *head = ring_head(pf);

	head->entries = entries_that_fit(pf->params.event_ring_bytes);
	head->entry_bytes = sizeof(struct vgpu_pf_event);
	head->boot_id = pf->params.boot_id;
	head->next_seq = 1;
	pf->events.seq = 1;
}

/* Append an event with the next seq and the table_generation in force; time_ns 0: now. */
void vgpu_pf_event_push(struct vgpu_pf *pf, const struct vgpu_pf_event *event)
{
	struct vgpu_pf_event_ring_head *head = ring_head(pf);
	/* not head->entries: the core does not rely on memory that it shares with clients */
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
