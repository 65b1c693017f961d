/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Everything the PF core knows about one VF, one sub-struct per file that owns it. Nobody else
 * writes into another file's sub-struct. VFs are addressed by pointer; vf->number is 1..total.
 */
#ifndef VGPU_CORE_VF_H
#define VGPU_CORE_VF_H

#include "pf-driver/core/base/types.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/uapi/vgpu_pf.h"

/*
 * Life cycle events, control.c. From PAUSE on they wait until the engine does not hold the VF, and
 * the later one here is the weightier.
 */
enum vgpu_vf_event {
	VGPU_VF_EVENT_NONE = 0,
	VGPU_VF_EVENT_PROVISION,
	VGPU_VF_EVENT_GRANT,	    /* full access granted to the guest's driver */
	VGPU_VF_EVENT_RESUME,	    /* the guest's driver is still there */
	VGPU_VF_EVENT_RESUME_FRESH, /* it is not */
	VGPU_VF_EVENT_RESET_DONE,
	VGPU_VF_EVENT_CLEAR_QUARANTINE,
	VGPU_VF_EVENT_SCRUB_DURABLE,
	VGPU_VF_EVENT_DEVICE_BACK,
	VGPU_VF_EVENT_LOADED, /* world switch put it into the engine */
	VGPU_VF_EVENT_UNLOADED,
	VGPU_VF_EVENT_HANG, /* it holds the engine and does not let go */
	VGPU_VF_EVENT_DEVICE_LOST,
	VGPU_VF_EVENT_PAUSE,
	VGPU_VF_EVENT_DRIVER_GONE,
	VGPU_VF_EVENT_RESET,
	VGPU_VF_EVENT_STOP,
	VGPU_VF_EVENT_QUARANTINE,
	VGPU_VF_EVENT_RELEASE,
	VGPU_VF_EVENTS,
};

/* inbox.c: what has happened to the VF and is not carried out yet */
struct vgpu_vf_inbox {
	uint32_t events;		 /* bit per enum vgpu_vf_event */
	uint8_t reasons[VGPU_VF_EVENTS]; /* enum vgpu_pf_reason */
	enum vgpu_vf_event asked;	 /* by an operator */
	uint64_t token;			 /* request to complete when that is done; 0: none */
};

struct vgpu_vf_control {
	bool driver_loaded;
	bool lost;	/* STOPPED because the device went away */
	uint32_t gates; /* last written to VGPU_VF0_GATES */
	uint32_t mismatches;
};

/* provision.c: resources as granted */
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
	uint32_t out[MAILBOX_DWORDS]; /* waits until the guest has taken the message before */
	bool out_pending;
	bool ack_expected;	/* the message in the box is one that guests acknowledge */
	uint32_t held_request;	/* enum mailbox_to_pf waiting for RESUME or the end of a reset */
	uint64_t not_before_ns; /* throttled: its messages are not looked at earlier */
	uint64_t messages, unknown;
};

struct vgpu_vf_access {
	bool granted; /* register write gate is open */
	uint64_t count, timeouts;
};

enum vgpu_vf_reset_stage {
	VGPU_VF_RESET_NONE = 0,
	VGPU_VF_RESET_WAIT_GUEST, /* told the guest, waiting for READY_TO_RESET */
	VGPU_VF_RESET_WAIT_FLR,	  /* the device is at it */
};

struct vgpu_vf_reset {
	enum vgpu_vf_reset_stage stage;
	enum vgpu_pf_reason reason;
	bool flr_done;	   /* the device state is already reset */
	bool is_flr_known; /* and the reset that follows it waits for the engine */
	bool guest_told, guest_ready;
	bool told_again;      /* in this wait */
	bool told_unanswered; /* a late READY_TO_RESET is not the guest's own idea */
	uint32_t answer;      /* mailbox request to answer when done; 0: none */
	uint64_t deadline_ns;
	uint64_t started_ns;
	uint64_t count, guest_count, hang_count;
};

enum vgpu_vf_scrub_stage {
	VGPU_VF_SCRUB_NONE = 0,
	VGPU_VF_SCRUB_STATE,
	VGPU_VF_SCRUB_VRAM,
	VGPU_VF_SCRUB_VERIFY,
	VGPU_VF_SCRUB_DONE, /* waits for SCRUB_DURABLE */
};

struct vgpu_vf_scrub {
	enum vgpu_vf_scrub_stage stage;
	uint32_t next_unit;
	uint32_t failures;
	uint64_t started_ns, verify_started_ns; /* of the VRAM's part */
};

/* run/contract.c: the terms in force, and where the VF stands with them */
struct vgpu_vf_contract {
	struct vgpu_pf_contract terms;
	bool is_awake;		  /* its server has work, as last seen */
	bool is_exhausted;	  /* its server waits for the next budget */
	bool is_held;		  /* passed over until it has a slice's worth of tokens */
	int64_t budget_ns;	  /* left; negative after an overrun */
	int64_t tokens;		  /* millionths of a ns; negative after an overrun */
	uint64_t deadline_ns;	  /* of the budget */
	uint64_t filled_ns;	  /* when the tokens were right */
	uint64_t capped_since_ns; /* when the cap began */
	uint64_t held_ns;	  /* since when */
	uint64_t capped_ns;	  /* held in sum, until it was held last */
};

/* run/share.c: where the VF stands with its weight */
struct vgpu_vf_share {
	uint32_t weight; /* in force; 0: it has none */
	uint32_t wanted; /* of the table in force */
	uint32_t band;
	uint32_t slice_us; /* that its deadline reckons with */
	bool is_competing;
	bool is_paying;	    /* has no work and has had too much */
	bool was_by_weight; /* its last run was no reservation's */
	uint64_t received;  /* time of its band up to which it has been served */
	uint64_t rest;	    /* of the division that moved it last */
	uint64_t early_ns;  /* was counted before it was logged */
};

/* run/machine.c */
struct vgpu_vf_service {
	uint64_t ns;
	uint64_t reserved_ns; /* part that its reservation paid for */
	uint64_t wave_instructions;
	uint64_t switches;
	uint64_t overruns, overrun_max_ns;
	int64_t budget_ns;	   /* reserve section: left in this cycle */
	uint64_t waiting_since_ns; /* has work and is off the engine; 0: not waiting */
	uint32_t quantum_us;	   /* last written to VGPU_VF0_QUANTUM_US */
};

/* guard.c: GIM's sliding windows, in the order of the uapi's guard_events[] */
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
	uint32_t level;
	bool paused; /* PAUSED by the guard: resumes when the window has passed; control.c */
	uint32_t used[VGPU_GUARD_KINDS];
	uint64_t times_ns[VGPU_GUARD_KINDS][VGPU_GUARD_RECORDS];
	uint32_t told;	 /* events and log lines that its guest caused, in this minute */
	uint64_t untold; /* and those that were left out */
};

enum vgpu_vf_timer {
	VGPU_VF_TIMER_RESET = 0,
	VGPU_VF_TIMER_ACCESS,	/* full access must end */
	VGPU_VF_TIMER_ANSWER,	/* a held request must be answered */
	VGPU_VF_TIMER_OUTBOX,	/* the guest did not take a message */
	VGPU_VF_TIMER_THROTTLE, /* its message may be looked at */
	VGPU_VF_TIMER_GUARD,	/* have its windows emptied? */
	VGPU_VF_TIMER_TELL,	/* it may be spoken of again */
	VGPU_VF_TIMERS,
};

#define VGPU_TABLE_ENTRIES_UNKNOWN UINT32_MAX

struct vgpu_vf {
	uint32_t number;
	uint32_t generation;
	enum vgpu_pf_vf_state state;
	enum vgpu_pf_reason last_error;
	bool attached;
	struct vgpu_vf_config config;
	/* of its leaf tables in PF VRAM; those behind them are zero */
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

/* a VF that owns resources of the device */
static inline bool vgpu_vf_is_provisioned(const struct vgpu_vf *vf)
{
	return vf->state != VGPU_PF_VF_ABSENT && vf->config.vram_bytes != 0;
}

/* may be in the engine, or is: a hang of the engine can be its fault */
static inline bool vgpu_vf_is_in_service(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_READY || vf->state == VGPU_PF_VF_RUNNING;
}

/* may be put into the engine */
static inline bool vgpu_vf_is_runnable(const struct vgpu_vf *vf)
{
	return vf->inbox.events == 0 && vgpu_vf_is_in_service(vf);
}

static inline enum vgpu_vf_event vgpu_vf_weightiest(uint32_t events)
{
	return events ? (enum vgpu_vf_event)(31 - __builtin_clz(events)) : VGPU_VF_EVENT_NONE;
}

/* something happened to a VF; the first reason counts, but for an operator's */
static inline void vgpu_vf_post(struct vgpu_vf *vf, enum vgpu_vf_event event,
				enum vgpu_pf_reason reason)
{
	if (!(vf->inbox.events & 1u << event) || reason == VGPU_PF_REASON_OPERATOR)
		vf->inbox.reasons[event] = (uint8_t)reason;
	vf->inbox.events |= 1u << event;
}

#endif
