/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits and defaults of requests (vgpu_pf.h) and of a platform's start options, and the layout of
 * the event ring. This header is for the PF core and its platforms. Clients do not need it, because
 * GET_EVENT_RING returns the layout of the ring, and the error text about a value out of range
 * names the limit.
 */
#ifndef VGPU_UAPI_PF_LIMITS_H
#define VGPU_UAPI_PF_LIMITS_H

/* the event ring: one page for the head, then the entries; their number is a power of two */
#define VGPU_PF_RING_EVENTS_OFFSET 4096u
#define VGPU_PF_RING_ENTRIES	   16384u

/* run tables: quantum (DEFAULT: of a VF without an entry), weight, shortest max_gap_us */
#define VGPU_PF_QUANTUM_MIN_US	   100u
#define VGPU_PF_QUANTUM_MAX_US	   1000000u
#define VGPU_PF_QUANTUM_DEFAULT_US 6000u
#define VGPU_PF_WEIGHT_MAX	   10000u
#define VGPU_PF_GAP_MIN_US	   1000u

/* time limits of a VF; core/vf/full_access.c has the default for full access */
#define VGPU_PF_PREEMPT_TIMEOUT_MAX_US	   100000000u
#define VGPU_PF_PREEMPT_TIMEOUT_DEFAULT_US 100000u
#define VGPU_PF_FULL_ACCESS_TIMEOUT_MAX_MS 500000u

/* start options of a platform: time_scale and max_gap_ms of struct vgpu_pf_params (core/pf.h) */
#define VGPU_PF_TIME_SCALE_MAX	   1000u
#define VGPU_PF_MAX_GAP_DEFAULT_MS 60u

#endif
