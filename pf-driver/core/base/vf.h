/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_vf is the state of one VF in the PF core. struct vgpu_pf (state.h) has an array of
 * these structs: index n is VF n, and index 0 is the PF. The comment before a sub-struct names the
 * files to which this sub-struct belongs. Other files write only a few of its members, mostly when
 * they provision, pause, restore, reset or release the VF.
 */
#ifndef VGPU_CORE_VF_H
#define VGPU_CORE_VF_H

#include "pf-driver/core/base/types.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/uapi/vgpu_pf.h"

/* life cycle events (vf/control.c); vf_events.def explains their order, which vf/inbox.c uses */
enum vgpu_vf_event {
#define VF_EVENT(name) VGPU_VF_EVENT_##name,
#include "pf-driver/core/base/vf_events.def"
#undef VF_EVENT
	VGPU_VF_EVENTS,
};

/* inbox.c: pending events of the VF */
struct vgpu_vf_inbox {
	uint32_t events;		 /* pending events: bit n for event n */
	uint8_t reasons[VGPU_VF_EVENTS]; /* reason of each event, enum vgpu_pf_reason */
	enum vgpu_vf_event requested;	 /* event that an operator requested; NONE: no request */
	uint64_t token;			 /* names the operator's request; 0: no reply is due */
};

/* control.c: what the life cycle has besides `state` of struct vgpu_vf */
struct vgpu_vf_control {
	bool driver_loaded;	 /* true if the guest's driver is loaded */
	bool is_stopped_by_loss; /* true if the VF is STOPPED because of the event DEVICE_LOST */
	uint32_t gates;		 /* last value written to VGPU_VF0_GATES; UINT32_MAX: not known */
	uint32_t mismatches;	 /* number of events that were impossible in the VF's state */
};

/* provision.c: the resources of the VF. Keep the layout: the checkpoint contains this struct. */
struct vgpu_vf_config {
	uint64_t vram_bytes; /* 0: no resources */
	uint64_t cu_mask;    /* bit n for CU n */
	uint32_t doorbell_pages;
	uint32_t preempt_timeout_us;	 /* time to leave the engine; 0: default, 100 ms */
	uint32_t full_access_timeout_ms; /* 0: default, 3000 ms */
	uint32_t flags;			 /* enum vgpu_pf_provision_flags */
	uint8_t uuid[16];		 /* of the PROVISION request */
};

/* mailbox.c: messages between the PF and the guest's driver */
struct vgpu_vf_mailbox {
	uint32_t out[MAILBOX_DWORDS]; /* the latest message to the guest */
	bool out_pending;	      /* true while out[] waits for the mailbox registers */
	bool ack_expected; /* true while the core waits for the driver to acknowledge a message */
	uint32_t deferred_request; /* request to answer later, enum mailbox_to_pf; 0: none */
	uint64_t not_before_ns;	   /* earliest time to read a throttled guest's message; 0: none */
	uint64_t messages;	   /* messages received, with known and unknown numbers */
	uint64_t unknown;	   /* messages received with an unknown number */
};

/* full_access.c: full access of the guest's driver */
struct vgpu_vf_access {
	bool granted; /* true if the guest's driver has full access, even while the VF is paused */
	uint64_t count;	   /* how often the driver got full access */
	uint64_t timeouts; /* how often the driver did not release full access in time */
};

enum vgpu_vf_reset_stage {
	VGPU_VF_RESET_NONE = 0,
	VGPU_VF_RESET_WAIT_GUEST, /* the guest was notified: wait for READY_TO_RESET */
	VGPU_VF_RESET_WAIT_FLR,	  /* wait until bit FLR of VGPU_RESET is clear */
};

/*
 * reset.c: the reset in progress, the last reset, and counters. The client is the VMM (such as
 * QEMU) that has the VF open.
 */
struct vgpu_vf_reset {
	enum vgpu_vf_reset_stage stage;
	enum vgpu_pf_reason reason;
	bool flr_done; /* true if the FLR of this reset is done, whether core or client began it */
	/* true if the client reset or closed the function, which caused the pending event RESET */
	bool is_client_flr_pending;
	/*
	 * true if the guest's present driver got FLR_NOTIFICATION for this reset or a reset of the
	 * device
	 */
	bool guest_notified;
	/* true if READY_TO_RESET came during this reset or a device reset, and is unanswered */
	bool guest_ready;
	/* true if the first half of WAIT_GUEST is over, with or without a second notification */
	bool renotified;
	/*
	 * true if the next READY_TO_RESET answers the last FLR_NOTIFICATION and requests no new
	 * reset
	 */
	bool unanswered;
	/* message to answer when the reset is done, enum mailbox_to_pf; 0: none */
	uint32_t pending_message;
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

/* scrub.c: the scrub after a release */
struct vgpu_vf_scrub {
	enum vgpu_vf_scrub_stage stage;
	/* first unit of the range in progress; between ranges: where to look for the next one */
	uint32_t next_unit;
	uint32_t failures;	    /* failed attempts of this scrub */
	uint64_t started_ns;	    /* start of the stage VRAM */
	uint64_t verify_started_ns; /* start of the stage VERIFY */
};

/*
 * run/contract.c, run/gang.c: the VF's scheduling contract: its terms in force, the state of its
 * reservation or gang slots, and the state of its cap (a token bucket)
 */
struct vgpu_vf_contract {
	struct vgpu_pf_contract terms;
	/* true if the VF had work at the last update of the reservation, and has had work since */
	bool is_awake;
	/* true if the rest of the budget or of the gang slot is too short for a run */
	bool is_exhausted;
	bool is_throttled; /* true if the cap has too few tokens for a slice */
	/* rest of the reservation's budget, negative after an overrun; or rest of the gang slot */
	int64_t budget_ns;
	int64_t tokens; /* tokens of the cap, in millionths of a ns; negative after an overrun */
	uint64_t deadline_ns;	     /* deadline of the budget, or end of the gang slot */
	uint64_t filled_ns;	     /* the time up to which tokens have been added */
	uint64_t cap_since_ns;	     /* when the VF got its cap; changes of the cap do not count */
	uint64_t throttled_since_ns; /* since when the VF with work waits for tokens; 0: no wait */
	uint64_t throttled_ns;	     /* sum of the earlier waits */
};

/* run/share.c: the weight of the VF, and the service that the VF has received by weight */
struct vgpu_vf_share {
	uint32_t weight; /* the weight by which the VF is served now; 0: none */
	/* weight in the run table in force; it replaces `weight` once the lags allow that */
	uint32_t table_weight;
	uint32_t priority_class; /* priority class in the run table in force */
	uint32_t slice_us;	 /* slice length from which outlook.c computes the deadline */
	bool is_competing;	 /* true if the VF competes by weight: with work, or strict */
	/* true if the VF does not compete, but its weight counts until its negative lag is 0 */
	bool has_negative_lag;
	/* true if the last logged run was neither from a reservation nor in a gang slot */
	bool was_by_weight;
	/* virtual time up to which the VF has been served: R in share.c, which explains the unit */
	uint64_t received;
	uint64_t remainder; /* of the last division of service by the weight, in 2^-24 ns */
	uint64_t early_ns;  /* service that share.c charged before the device logged the run */
};

/* the files of run/: service received, and state of the VF between runs */
struct vgpu_vf_service {
	uint64_t ns;	      /* all service */
	uint64_t reserved_ns; /* part of ns that was served from a reservation or in gang slots */
	uint64_t wave_instructions;
	uint64_t switches;	 /* times the VF was put into the engine */
	uint64_t overruns;	 /* runs that took over 200 us longer than allowed */
	uint64_t overrun_max_ns; /* longest overrun */
	/* rest of the reserve budget (pick.c) in this table cycle; negative after an overrun */
	int64_t budget_ns;
	uint64_t waiting_since_ns; /* start of the VF's wait with work; 0: the VF does not wait */
	uint32_t quantum_us; /* last value written to VGPU_VF0_QUANTUM_US; UINT32_MAX: not known */
};

/*
 * Kinds of events that a guest causes. The guard (vf/guard.c) counts each kind in its own sliding
 * window, as AMD's PF driver GIM does. The order is that of guard_events[] in the uapi.
 */
enum vgpu_guard_kind {
	VGPU_GUARD_FLR = 0,	      /* resets that the guest causes */
	VGPU_GUARD_EXCLUSIVE,	      /* requests to load or unload a driver */
	VGPU_GUARD_EXCLUSIVE_TIMEOUT, /* time-outs of full access */
	VGPU_GUARD_INTERRUPT,	      /* mailbox messages */
	VGPU_GUARD_KINDS,
};

/* number of event times kept for each kind; enough for the highest level at the largest limit */
#define VGPU_GUARD_RECORDS   128u
#define VGPU_GUARD_LIMIT_MAX 64u

/* guard.c, notify.c: what the guest caused, and the reaction to it */
struct vgpu_vf_guard {
	uint32_t limits[VGPU_GUARD_KINDS]; /* events allowed in a window; UINT32_MAX: no limit */
	uint32_t level;			   /* reaction in force; guard.c lists the levels */
	bool paused;			   /* true if the guard paused the VF, and will resume it */
	/* events of each kind counted so far */
	uint32_t counted[VGPU_GUARD_KINDS];
	/* times of the last events of each kind: event i at index i % VGPU_GUARD_RECORDS */
	uint64_t times_ns[VGPU_GUARD_KINDS][VGPU_GUARD_RECORDS];
	uint32_t notified;   /* notify.c: events and log lines written in this minute */
	uint64_t unreported; /* notify.c: events and log lines left out in this minute */
};

enum vgpu_vf_timer {
	VGPU_VF_TIMER_RESET = 0, /* poll the FLR; notify a silent guest again, then stop waiting */
	VGPU_VF_TIMER_ACCESS,	 /* end full access */
	VGPU_VF_TIMER_ANSWER,	 /* answer the deferred request with FAIL */
	VGPU_VF_TIMER_OUTBOX,	 /* stop waiting for the driver to acknowledge the message */
	VGPU_VF_TIMER_THROTTLE,	 /* read the message of a throttled guest */
	VGPU_VF_TIMER_GUARD,	 /* check whether the guard can lift its reaction */
	VGPU_VF_TIMER_NOTIFY,	 /* end the minute for which notify.c counts */
	VGPU_VF_TIMERS,
};

#define VGPU_TABLE_ENTRIES_UNKNOWN UINT32_MAX

struct vgpu_vf {
	uint32_t number;     /* 1..total_vfs; 0: the PF */
	uint32_t generation; /* counts the provisionings of the VF */
	enum vgpu_pf_vf_state state;
	/* cause of the last reset, stop, quarantine, device loss or failed scrub */
	enum vgpu_pf_reason last_error;
	bool attached; /* true if a client such as QEMU has the function open */
	struct vgpu_vf_config config;
	/*
	 * Of all entries of the VF's leaf page tables in PF VRAM (resource/vf_page_table.c), only
	 * the first table_entries may be other than 0. VGPU_TABLE_ENTRIES_UNKNOWN: any may be.
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
	uint64_t timers_ns[VGPU_VF_TIMERS]; /* deadlines (base/timer.c); 0: not set */
};

/* True if the VF has resources. False while it is being provisioned, because it is still ABSENT. */
static inline bool vgpu_vf_is_provisioned(const struct vgpu_vf *vf)
{
	return vf->state != VGPU_PF_VF_ABSENT && vf->config.vram_bytes != 0;
}

/*
 * True if the VF is READY or RUNNING. In other states the scheduler does not put the VF into the
 * engine, and the core does not blame the VF for a failed world switch.
 */
static inline bool vgpu_vf_is_in_service(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_READY || vf->state == VGPU_PF_VF_RUNNING;
}

/* True if the VF is READY or RUNNING without a pending event, so that it may use the engine. */
static inline bool vgpu_vf_is_runnable(const struct vgpu_vf *vf)
{
	return vf->inbox.events == 0 && vgpu_vf_is_in_service(vf);
}

/* Get the most severe event of a mask, the last in vf_events.def. Return: NONE for mask 0. */
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
