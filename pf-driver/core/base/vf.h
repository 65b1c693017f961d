/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_vf has everything that the PF core knows about one VF. Each sub-struct belongs to one
 * file. Other files write to the sub-struct only where they begin, restore, reset or end a VF.
 */
#ifndef VGPU_CORE_VF_H
#define VGPU_CORE_VF_H

#include "pf-driver/core/base/types.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/uapi/vgpu_pf.h"

/*
 * Life cycle events (control.c) in order of severity, the most severe last. inbox.c has the order
 * in which pending events are carried out. PAUSE and the events after it wait until the VF is not
 * in the engine.
 */
enum vgpu_vf_event {
#define VF_EVENT(name) VGPU_VF_EVENT_##name,
#include "pf-driver/core/base/vf_events.def"
#undef VF_EVENT
	VGPU_VF_EVENTS,
};

/* inbox.c: events of the VF that are not carried out yet */
struct vgpu_vf_inbox {
	uint32_t events;		 /* bit per enum vgpu_vf_event */
	uint8_t reasons[VGPU_VF_EVENTS]; /* enum vgpu_pf_reason */
	enum vgpu_vf_event asked;	 /* the event that an operator requested */
	uint64_t token;			 /* names the operator's request; 0: no reply is due */
};

struct vgpu_vf_control {
	bool driver_loaded;
	bool lost;	     /* STOPPED because the device was lost */
	uint32_t gates;	     /* last value written to VGPU_VF0_GATES; UINT32_MAX: not known */
	uint32_t mismatches; /* events that the transition table does not have */
};

/* provision.c: the resources of the VF. The checkpoint has this struct: keep the layout */
struct vgpu_vf_config {
	uint64_t vram_bytes;
	uint64_t cu_mask;
	uint32_t doorbell_pages;
	uint32_t preempt_timeout_us;
	uint32_t full_access_timeout_ms;
	uint32_t flags; /* enum vgpu_pf_provision_flags */
	uint8_t uuid[16];
};

struct vgpu_vf_mailbox {
	uint32_t out[MAILBOX_DWORDS]; /* the latest message to the guest */
	bool out_pending;	      /* out waits: the guest has not taken the previous message */
	bool ack_expected;	      /* drivers acknowledge the message in the box */
	uint32_t deferred_request;    /* a deferred enum mailbox_to_pf (mailbox.c); 0: none */
	uint64_t not_before_ns;	      /* a throttled guest's message waits until then; 0: unset */
	uint64_t messages, unknown;   /* received; of these, with an unknown number */
};

struct vgpu_vf_access {
	bool granted; /* the guest's driver has full access, also while the VF is paused */
	uint64_t count, timeouts;
};

enum vgpu_vf_reset_stage {
	VGPU_VF_RESET_NONE = 0,
	VGPU_VF_RESET_WAIT_GUEST, /* the guest is notified; its READY_TO_RESET is awaited */
	VGPU_VF_RESET_WAIT_FLR,	  /* the device resets the function */
};

struct vgpu_vf_reset {
	enum vgpu_vf_reset_stage stage;
	enum vgpu_pf_reason reason;
	bool flr_done;	   /* the FLR of this reset is done or was done by the client */
	bool is_flr_known; /* the client has done an FLR; RESET is posted and not carried out */
	bool guest_notified,
		guest_ready; /* in this reset: FLR_NOTIFICATION sent; READY_TO_RESET received */
	bool renotified;     /* the guest was notified a second time in this wait */
	bool unanswered;     /* a late READY_TO_RESET answers the last reset: no new request */
	uint32_t answer;     /* mailbox request to answer when the reset is done; 0: none */
	uint64_t deadline_ns;
	uint64_t started_ns;
	uint64_t count, guest_count, hang_count;
};

enum vgpu_vf_scrub_stage {
	VGPU_VF_SCRUB_NONE = 0,
	VGPU_VF_SCRUB_STATE,  /* zero the device state of the VF */
	VGPU_VF_SCRUB_VRAM,   /* zero the VF's VRAM */
	VGPU_VF_SCRUB_VERIFY, /* check that the VF's VRAM is zero */
	VGPU_VF_SCRUB_DONE,   /* waits for SCRUB_DURABLE */
};

struct vgpu_vf_scrub {
	enum vgpu_vf_scrub_stage stage;
	uint32_t next_unit; /* next unit of VRAM in this stage */
	uint32_t failures;
	uint64_t started_ns, verify_started_ns; /* start of the stages VRAM and VERIFY */
};

/* run/contract.c: the terms in force; state of the reservation and of the cap (a token bucket) */
struct vgpu_vf_contract {
	struct vgpu_pf_contract terms;
	bool is_awake;		  /* the VF had work when the reservation was last updated */
	bool is_exhausted;	  /* the reservation waits for its next budget */
	bool is_throttled;	  /* skipped until it has enough tokens for a slice */
	int64_t budget_ns;	  /* left of the reservation; negative after an overrun */
	int64_t tokens;		  /* in millionths of a ns; negative after an overrun */
	uint64_t deadline_ns;	  /* deadline of the budget */
	uint64_t filled_ns;	  /* the time up to which tokens have been added */
	uint64_t capped_since_ns; /* start of the cap */
	uint64_t throttled_ns;	  /* start of the present time throttled with work; 0: none */
	uint64_t capped_ns;	  /* total of the earlier times throttled with work */
};

/* run/share.c: the weight of the VF, and how far it has been served */
struct vgpu_vf_share {
	uint32_t weight;	 /* in force; 0: none */
	uint32_t table_weight;	 /* the weight of the table in force */
	uint32_t priority_class; /* that of the table in force */
	uint32_t slice_us;	 /* the slice length from which the VF's deadline is computed */
	bool is_competing;
	bool has_negative_lag; /* has no work and a negative lag; its weight still counts */
	bool was_by_weight;    /* the last run was not served by the reservation */
	uint64_t received;     /* virtual time of its class up to which the VF has been served */
	uint64_t rest;	       /* remainder of the last division that advanced received */
	uint64_t early_ns;     /* service counted before its run was in the log */
};

/* the files of run/: service received, and state of the VF between runs */
struct vgpu_vf_service {
	uint64_t ns;
	uint64_t reserved_ns; /* part of ns that the reservation paid for */
	uint64_t wave_instructions;
	uint64_t switches;
	uint64_t overruns, overrun_max_ns;
	int64_t budget_ns;	   /* reserve section: budget left in this cycle */
	uint64_t waiting_since_ns; /* start of the VF's wait with work; 0: it does not wait */
	uint32_t quantum_us;	   /* last written to VGPU_VF0_QUANTUM_US; UINT32_MAX: not known */
};

/* guard.c: abuse limits, GIM's sliding windows, in the order of the uapi's guard_events[] */
enum vgpu_guard_kind {
	VGPU_GUARD_FLR = 0,
	VGPU_GUARD_EXCLUSIVE,
	VGPU_GUARD_EXCLUSIVE_TIMEOUT,
	VGPU_GUARD_INTERRUPT,
	VGPU_GUARD_KINDS,
};

#define VGPU_GUARD_RECORDS   128u
#define VGPU_GUARD_LIMIT_MAX 64u

struct vgpu_vf_guard {
	uint32_t limits[VGPU_GUARD_KINDS];
	uint32_t level; /* reaction in force; guard.c lists the levels */
	bool paused;	/* PAUSED by the guard: RESUME follows when the windows have emptied */
	uint32_t used[VGPU_GUARD_KINDS];			 /* events counted so far */
	uint64_t times_ns[VGPU_GUARD_KINDS][VGPU_GUARD_RECORDS]; /* times of the last events */
	uint32_t notified; /* notify.c: events and log lines of the guest reported in this minute */
	uint64_t unreported; /* events and log lines left out in this minute */
};

enum vgpu_vf_timer {
	VGPU_VF_TIMER_RESET = 0, /* poll the FLR, or end the wait for the guest */
	VGPU_VF_TIMER_ACCESS,	 /* end full access */
	VGPU_VF_TIMER_ANSWER,	 /* answer the deferred request */
	VGPU_VF_TIMER_OUTBOX,	 /* stop waiting for the guest to take its message */
	VGPU_VF_TIMER_THROTTLE,	 /* read the message of a throttled guest */
	VGPU_VF_TIMER_GUARD,	 /* check whether the guard's windows have emptied */
	VGPU_VF_TIMER_NOTIFY,	 /* end the minute of notify.c */
	VGPU_VF_TIMERS,
};

#define VGPU_TABLE_ENTRIES_UNKNOWN UINT32_MAX

struct vgpu_vf {
	uint32_t number; /* 1..total_vfs */
	uint32_t generation;
	enum vgpu_pf_vf_state state;
	enum vgpu_pf_reason last_error;
	bool attached; /* a client has the function open */
	struct vgpu_vf_config config;
	/* entries of the VF's leaf tables in PF VRAM; all entries after them are zero */
	uint32_t table_entries;
	struct vgpu_vf_inbox inbox;
	struct vgpu_vf_control control;
	struct vgpu_vf_access access;
	struct vgpu_vf_mailbox mailbox;
	struct vgpu_vf_reset reset;
	struct vgpu_vf_scrub scrub;
	struct vgpu_vf_service service;
	struct vgpu_vf_contract contract;
	struct vgpu_vf_share share;
	struct vgpu_vf_guard guard;
	uint64_t timers_ns[VGPU_VF_TIMERS];
};

/* whether the VF owns resources of the device */
static inline bool vgpu_vf_is_provisioned(const struct vgpu_vf *vf)
{
	return vf->state != VGPU_PF_VF_ABSENT && vf->config.vram_bytes != 0;
}

/* whether the VF may be in the engine, so that a hang may be its fault */
static inline bool vgpu_vf_is_in_service(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_READY || vf->state == VGPU_PF_VF_RUNNING;
}

/* whether the VF may be put into the engine */
static inline bool vgpu_vf_is_runnable(const struct vgpu_vf *vf)
{
	return vf->inbox.events == 0 && vgpu_vf_is_in_service(vf);
}

/* the most severe of a mask of events; NONE if the mask is empty */
static inline enum vgpu_vf_event vgpu_vf_weightiest(uint32_t events)
{
	return events ? (enum vgpu_vf_event)(31 - __builtin_clz(events)) : VGPU_VF_EVENT_NONE;
}

/*
 * puts an event into the VF's inbox; if the event is pending already, its first reason stays,
 * unless the new reason is an operator's
 */
static inline void vgpu_vf_post(struct vgpu_vf *vf, enum vgpu_vf_event event,
				enum vgpu_pf_reason reason)
{
	if (!(vf->inbox.events & 1u << event) || reason == VGPU_PF_REASON_OPERATOR)
		vf->inbox.reasons[event] = (uint8_t)reason;
	vf->inbox.events |= 1u << event;
}

#endif
