/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_vf has everything that the PF core knows about one VF. The comment before a
 * sub-struct names the files to which this sub-struct belongs. Other files write single members,
 * mostly when they provision, pause, restore, reset or release the VF.
 */
#ifndef VGPU_CORE_VF_H
#define VGPU_CORE_VF_H

#include "pf-driver/core/base/types.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/uapi/vgpu_pf.h"

/* life cycle events (control.c); vf_events.def explains their order, which inbox.c uses */
enum vgpu_vf_event {
#define VF_EVENT(name) VGPU_VF_EVENT_##name,
#include "pf-driver/core/base/vf_events.def"
#undef VF_EVENT
	VGPU_VF_EVENTS,
};

/* inbox.c: pending events of the VF */
struct vgpu_vf_inbox {
	uint32_t events;		 /* one bit for each enum vgpu_vf_event */
	uint8_t reasons[VGPU_VF_EVENTS]; /* reason of each event, enum vgpu_pf_reason */
	enum vgpu_vf_event requested;	 /* the event that an operator requested; NONE: none */
	uint64_t token;			 /* names the operator's request; 0: no reply is due */
};

/* control.c */
struct vgpu_vf_control {
	bool driver_loaded;  /* true if the guest's driver is loaded */
	bool lost;	     /* true if the VF is STOPPED because the device was lost */
	uint32_t gates;	     /* last value written to VGPU_VF0_GATES; UINT32_MAX: not known */
	uint32_t mismatches; /* number of events that were impossible in the VF's state */
};

/* provision.c: the resources of the VF. The checkpoint contains this struct: keep its layout */
struct vgpu_vf_config {
	uint64_t vram_bytes;
	uint64_t cu_mask;
	uint32_t doorbell_pages;
	uint32_t preempt_timeout_us;
	uint32_t full_access_timeout_ms;
	uint32_t flags; /* enum vgpu_pf_provision_flags */
	uint8_t uuid[16];
};

/* mailbox.c */
struct vgpu_vf_mailbox {
	uint32_t out[MAILBOX_DWORDS]; /* the latest message to the guest */
	bool out_pending;  /* true if out[] waits until the guest takes the message in the box */
	bool ack_expected; /* true if the driver must still acknowledge the message in the box */
	uint32_t deferred_request; /* request to answer later, enum mailbox_to_pf; 0: none */
	uint64_t not_before_ns;	   /* until when the guard delays the guest's message; 0: not set */
	uint64_t messages;	   /* messages received, with known and unknown numbers */
	uint64_t unknown;	   /* messages received with an unknown number */
};

/* full_access.c */
struct vgpu_vf_access {
	bool granted; /* true if the guest's driver has full access, even while the VF is paused */
	uint64_t count;	   /* how often the driver got full access */
	uint64_t timeouts; /* how often the driver did not release full access in time */
};

enum vgpu_vf_reset_stage {
	VGPU_VF_RESET_NONE = 0,
	VGPU_VF_RESET_WAIT_GUEST, /* notify the guest, and wait for READY_TO_RESET */
	VGPU_VF_RESET_WAIT_FLR,	  /* the device resets the function */
};

/* reset.c */
struct vgpu_vf_reset {
	enum vgpu_vf_reset_stage stage;
	enum vgpu_pf_reason reason;
	bool flr_done;	   /* true if the FLR of this reset is done, by the core or by the client */
	bool is_flr_known; /* true if the pending RESET is for an FLR that the client has done */
	bool guest_notified; /* true if FLR_NOTIFICATION was sent for this reset */
	bool guest_ready;    /* true if READY_TO_RESET was received and is not answered yet */
	/* true if the first half of WAIT_GUEST is over, with or without a second notification */
	bool renotified;
	bool unanswered; /* true if the next READY_TO_RESET is a late answer to the last reset */
	uint32_t answer; /* mailbox request to answer when the reset is done; 0: none */
	uint64_t deadline_ns; /* WAIT_FLR: end of the time limit */
	uint64_t started_ns;
	uint64_t count;	      /* all resets */
	uint64_t guest_count; /* resets with the reason GUEST_REQUEST or GUEST_FLR */
	uint64_t hang_count;  /* resets because a world switch failed */
};

enum vgpu_vf_scrub_stage {
	VGPU_VF_SCRUB_NONE = 0,
	VGPU_VF_SCRUB_STATE,  /* zero the device state of the VF */
	VGPU_VF_SCRUB_VRAM,   /* zero the VF's VRAM */
	VGPU_VF_SCRUB_VERIFY, /* check that the VF's VRAM is zero */
	VGPU_VF_SCRUB_DONE,   /* the VF waits for SCRUB_DURABLE */
};

/* scrub.c */
struct vgpu_vf_scrub {
	enum vgpu_vf_scrub_stage stage;
	uint32_t next_unit; /* first unit of the range in progress, or from where to look for one */
	uint32_t failures;  /* failed attempts of this scrub */
	uint64_t started_ns;	    /* start of the stage VRAM */
	uint64_t verify_started_ns; /* start of the stage VERIFY */
};

/*
 * run/contract.c, run/gang.c: the terms in force; the state of the reservation or gang slots, and
 * of the cap (a token bucket)
 */
struct vgpu_vf_contract {
	struct vgpu_pf_contract terms;
	/* true if the VF had work at the last update of the reservation, and still has */
	bool is_awake;
	bool is_exhausted; /* true until the next budget comes, or the next gang slot begins */
	bool is_throttled; /* true if the VF is skipped until it has tokens for a slice */
	/* rest of the reservation's budget, negative after an overrun; or rest of the gang slot */
	int64_t budget_ns;
	int64_t tokens; /* tokens of the cap, in millionths of a ns; negative after an overrun */
	uint64_t deadline_ns;	     /* deadline of the budget, or end of the gang slot */
	uint64_t filled_ns;	     /* the time up to which tokens have been added */
	uint64_t cap_since_ns;	     /* when the VF, which had no cap, got one */
	uint64_t throttled_since_ns; /* since when the VF waits for tokens with work; 0: not now */
	uint64_t throttled_ns;	     /* total of the earlier waits for tokens with work */
};

/* run/share.c: the weight of the VF, and how far the VF has been served */
struct vgpu_vf_share {
	uint32_t weight; /* the weight by which the VF is served now; 0: none */
	/* the weight in the run table in force, by which the VF is served once that is safe */
	uint32_t table_weight;
	uint32_t priority_class; /* the priority class in the run table in force */
	uint32_t slice_us;	 /* the slice length from which the VF's deadline is computed */
	bool is_competing;	 /* true if the VF competes by weight: with work, or strict */
	/* true if the VF does not compete, but its weight counts until its negative lag is 0 */
	bool has_negative_lag;
	bool was_by_weight; /* true unless a reservation or gang slot served the last logged run */
	uint64_t received;  /* virtual time up to which the VF has been served: R in share.c */
	uint64_t remainder; /* remainder of the last division of service by the weight */
	uint64_t early_ns;  /* service that was charged before the device logged the run */
};

/* the files of run/: service received, and state of the VF between runs */
struct vgpu_vf_service {
	uint64_t ns;	      /* all service */
	uint64_t reserved_ns; /* part of the service that a reservation or gang slots gave */
	uint64_t wave_instructions;
	uint64_t switches; /* times the VF was put into the engine */
	uint64_t overruns;
	uint64_t overrun_max_ns;   /* longest overrun */
	int64_t budget_ns;	   /* reserve section: budget left in this cycle of the run table */
	uint64_t waiting_since_ns; /* start of the VF's wait with work; 0: the VF does not wait */
	uint32_t quantum_us; /* last value written to VGPU_VF0_QUANTUM_US; UINT32_MAX: not known */
};

/*
 * The kinds of events that the guard counts, each in a sliding window (as in GIM, AMD's PF driver).
 * The order is that of guard_events[] in the uapi.
 */
enum vgpu_guard_kind {
	VGPU_GUARD_FLR = 0,	      /* resets */
	VGPU_GUARD_EXCLUSIVE,	      /* requests of a loading driver for full access */
	VGPU_GUARD_EXCLUSIVE_TIMEOUT, /* time-outs of full access */
	VGPU_GUARD_INTERRUPT,	      /* mailbox messages */
	VGPU_GUARD_KINDS,
};

#define VGPU_GUARD_RECORDS   128u
#define VGPU_GUARD_LIMIT_MAX 64u

/* guard.c, notify.c: what the guest caused, and the reaction to it */
struct vgpu_vf_guard {
	uint32_t limits[VGPU_GUARD_KINDS]; /* events in a window; UINT32_MAX: no limit */
	uint32_t level;			   /* reaction in force; guard.c lists the levels */
	bool paused;			   /* true if the guard paused the VF, and will resume it */
	/* events of each kind counted so far */
	uint32_t counted[VGPU_GUARD_KINDS];
	/* times of the last events of each kind */
	uint64_t times_ns[VGPU_GUARD_KINDS][VGPU_GUARD_RECORDS];
	uint32_t notified;   /* notify.c: events and log lines written in this minute */
	uint64_t unreported; /* notify.c: events and log lines left out in this minute */
};

enum vgpu_vf_timer {
	VGPU_VF_TIMER_RESET = 0, /* poll the FLR, notify a silent guest again, or end the wait */
	VGPU_VF_TIMER_ACCESS,	 /* end full access */
	VGPU_VF_TIMER_ANSWER,	 /* answer the deferred request with FAIL */
	VGPU_VF_TIMER_OUTBOX,	 /* stop waiting for the guest to take the message */
	VGPU_VF_TIMER_THROTTLE,	 /* read the message of a throttled guest */
	VGPU_VF_TIMER_GUARD,	 /* check whether the guard can lift its reaction */
	VGPU_VF_TIMER_NOTIFY,	 /* end the minute of notify.c */
	VGPU_VF_TIMERS,
};

#define VGPU_TABLE_ENTRIES_UNKNOWN UINT32_MAX

struct vgpu_vf {
	uint32_t number;     /* 1..total_vfs; 0: the PF */
	uint32_t generation; /* counts the provisionings of the VF */
	enum vgpu_pf_vf_state state;
	enum vgpu_pf_reason last_error; /* cause of the last reset, stop or failed scrub */
	bool attached;			/* true if a client has the function open */
	struct vgpu_vf_config config;
	/*
	 * the VF's leaf tables in PF VRAM hold zeroes after this number of entries;
	 * VGPU_TABLE_ENTRIES_UNKNOWN: the core does not know what the tables hold
	 */
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
	uint64_t timers_ns[VGPU_VF_TIMERS]; /* deadlines; 0: not set */
};

/* True if the VF owns resources of the device. */
static inline bool vgpu_vf_is_provisioned(const struct vgpu_vf *vf)
{
	return vf->state != VGPU_PF_VF_ABSENT && vf->config.vram_bytes != 0;
}

/* True if the VF may be in the engine, and so may be guilty of a hang. */
static inline bool vgpu_vf_is_in_service(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_READY || vf->state == VGPU_PF_VF_RUNNING;
}

/* True if the VF may be put into the engine. */
static inline bool vgpu_vf_is_runnable(const struct vgpu_vf *vf)
{
	return vf->inbox.events == 0 && vgpu_vf_is_in_service(vf);
}

/* Get the most severe event of a mask. Return: the event; NONE if the mask is empty. */
static inline enum vgpu_vf_event vgpu_vf_severest(uint32_t events)
{
	return events ? (enum vgpu_vf_event)(31 - __builtin_clz(events)) : VGPU_VF_EVENT_NONE;
}

/*
 * Put an event into the VF's inbox. If the event is pending already, its first reason stays, unless
 * the new reason is OPERATOR.
 */
static inline void vgpu_vf_post(struct vgpu_vf *vf, enum vgpu_vf_event event,
				enum vgpu_pf_reason reason)
{
	if (!(vf->inbox.events & 1u << event) || reason == VGPU_PF_REASON_OPERATOR)
		vf->inbox.reasons[event] = (uint8_t)reason;
	vf->inbox.events |= 1u << event;
}

#endif
