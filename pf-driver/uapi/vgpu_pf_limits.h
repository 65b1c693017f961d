/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Numbers of the uapi that the PF core and its homes share: what a request may say, what holds if
 * it says nothing, and how the event ring is laid out. Clients learn the ring from GET_EVENT_RING
 * and limits from the errors; they do not need this header.
 */
#ifndef VGPU_UAPI_PF_LIMITS_H
#define VGPU_UAPI_PF_LIMITS_H

/* the ring: its head has a page, then come the entries */
#define VGPU_PF_RING_EVENTS_OFFSET 4096u
#define VGPU_PF_RING_ENTRIES	   16384u

/* run tables */
#define VGPU_PF_QUANTUM_MIN_US	   100u
#define VGPU_PF_QUANTUM_MAX_US	   1000000u
#define VGPU_PF_QUANTUM_DEFAULT_US 6000u
#define VGPU_PF_WEIGHT_MAX	   10000u
#define VGPU_PF_GAP_MIN_US	   1000u

/* how long a VF may take */
#define VGPU_PF_PREEMPT_TIMEOUT_MAX_US	   100000000u
#define VGPU_PF_PREEMPT_TIMEOUT_DEFAULT_US 100000u
#define VGPU_PF_FULL_ACCESS_TIMEOUT_MAX_MS 500000u

/* what a home is started with */
#define VGPU_PF_TIME_SCALE_MAX	   1000u
#define VGPU_PF_MAX_GAP_DEFAULT_MS 60u

#endif
