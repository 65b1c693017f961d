/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions that only the files of the run-table scheduler call, grouped by file. Each function is
 * documented where it is defined. run/parts.h has the functions for the rest of the core.
 */
#ifndef VGPU_CORE_RUN_INTERNAL_H
#define VGPU_CORE_RUN_INTERNAL_H

#include "pf-driver/core/run/parts.h"

#define QUANTUM_UNCONTENDED_US 500000u /* quantum of an uncontended run */
#define SLICE_MIN_NS	       (VGPU_PF_QUANTUM_MIN_US * VGPU_NS_PER_US) /* shortest slice */

/* True if the mask (bit n - 1 for VF n) contains a VF. vf: from 1. */
static inline bool vgpu_has_bit(uint32_t mask, uint32_t vf)
{
	return (mask >> (vf - 1)) & 1;
}

/* the slice timer fires this long after the time at which the device should have ended the run */
#define SLICE_TIMER_SLACK_NS (20 * VGPU_NS_PER_MS)
#define RECOVER_POLL_NS	     VGPU_NS_PER_MS /* time between two polls of a broken engine */
#define RUN_LOG_ENTRIES	     256u	    /* length of the run log; a power of two */

/* machine.c: inputs of the state machine */
enum vgpu_run_input {
	RUN_INPUT_FOUND_EMPTY = 0, /* a read of the device shows: no VF is in the engine */
	RUN_INPUT_FOUND_RUNNING,   /* a read of the device shows: a VF runs */
	RUN_INPUT_FOUND_EXPIRED,   /* a read of the device shows: a VF is loaded, but parked */
	RUN_INPUT_ENGINE_BUSY,	   /* at the start: an earlier command is still in execution */
	RUN_INPUT_DECIDED,	   /* a world switch begins */
	RUN_INPUT_LOADED,	   /* the switch is complete: a VF runs */
	RUN_INPUT_UNLOADED,	   /* the switch is complete: no VF is in the engine */
	RUN_INPUT_FAILED,	   /* a command of the switch failed */
	RUN_INPUT_QUANTUM_OVER,	   /* the run has ended, and its VF stays in the engine, parked */
	RUN_INPUT_RESET_INSIDE,	   /* a reset by a VMM has removed the VF from the engine */
	RUN_INPUT_STOP,		   /* the scheduler stops */
	RUN_INPUTS,
};

/* kind.c: properties of a kind of run */
struct vgpu_run_kind_row {
	const char *name;
	/* true if the core may resume a run that an urgent run or a higher class preempted */
	bool may_be_cut;
	/* false: the run is endless (enum vgpu_run_kind), and its idle time is not service */
	bool has_end;
	/* true if share.c charges the VF's share while the run lasts, not only at its end */
	bool is_by_weight;
	/* true if the run may preempt other runs, and no RESERVE run may preempt this run */
	bool is_urgent;
	bool has_grant; /* true if service beyond granted_ns is an overrun */
};
const struct vgpu_run_kind_row *vgpu_pf_run_kind(const struct vgpu_run *run);
uint64_t vgpu_pf_run_kind_allowed_ns(const struct vgpu_run *run);
bool vgpu_pf_run_kind_is_endless(const struct vgpu_run *run);

/* tables.c */
void vgpu_pf_run_tables_fallback(struct vgpu_pf *pf, struct vgpu_run_indexed_table *indexed);
struct vgpu_run_indexed_table *vgpu_pf_run_tables_active(struct vgpu_pf *pf);
uint64_t vgpu_pf_run_tables_quantum(struct vgpu_pf *pf, uint32_t vf);

/* busy.c */
uint32_t vgpu_pf_run_busy_runnable(struct vgpu_pf *pf);
uint32_t vgpu_pf_run_busy_competing(struct vgpu_pf *pf);
void vgpu_pf_run_busy_announce(struct vgpu_pf *pf);
void vgpu_pf_run_busy_read(struct vgpu_pf *pf);

/* preempt.c */
uint32_t vgpu_pf_run_preempt_waiting(struct vgpu_pf *pf);
bool vgpu_pf_run_preempt_has_woken(const struct vgpu_pf_scheduler *scheduler);
bool vgpu_pf_run_preempt_is_strict(struct vgpu_pf *pf);
void vgpu_pf_run_preempt_consider(struct vgpu_pf *pf);

/* decide.c, pick.c */
void vgpu_pf_run_decide_now(struct vgpu_pf *pf);
bool vgpu_pf_run_decide_urgent(struct vgpu_pf *pf, struct vgpu_run *run);
const char *vgpu_pf_run_decide_name(uint32_t decision);
void vgpu_pf_run_pick_start_cycle(struct vgpu_pf *pf);
void vgpu_pf_run_pick_set(struct vgpu_run *run, uint32_t vf, enum vgpu_run_kind kind,
			  uint64_t granted_ns, uint64_t quantum_ns);
bool vgpu_pf_run_pick_is_overdue(struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_run_pick_exclusive(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
bool vgpu_pf_run_pick_reserve(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
bool vgpu_pf_run_pick_boost(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
bool vgpu_pf_run_pick_resumed(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
bool vgpu_pf_run_pick_uncontended(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
bool vgpu_pf_run_pick_share(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);

/* machine.c, engine.c */
void vgpu_pf_run_machine_step(struct vgpu_pf *pf, enum vgpu_run_input input);
bool vgpu_pf_run_engine_must_leave(const struct vgpu_pf *pf);
void vgpu_pf_run_engine_begin(struct vgpu_pf *pf, const struct vgpu_run *run);
void vgpu_pf_run_engine_switched(struct vgpu_pf *pf);
void vgpu_pf_run_engine_failed(struct vgpu_pf *pf, uint32_t guilty, enum vgpu_pf_reason reason);

/* switch.c */
void vgpu_pf_run_switch_start(struct vgpu_pf *pf, uint32_t from, uint32_t to);
bool vgpu_pf_run_switch_is_engine_free(struct vgpu_pf *pf);
void vgpu_pf_run_switch_abandon(struct vgpu_pf *pf);

/* account.c: how the run of a log entry ended; all members are 0 if the entry is not valid */
struct vgpu_run_end {
	bool is_current;  /* true if the run is scheduler.run; false: an earlier or unknown run */
	bool has_no_work; /* true if the VF ran out of work */
	bool is_reset;	  /* true if a reset of the VF ended the run */
	uint64_t cut_ns;  /* rest of the slice that was cut; 0: no slice was cut */
	uint32_t vf;
};
bool vgpu_pf_run_account_next(struct vgpu_pf *pf, struct vgpu_run_end *end);
void vgpu_pf_run_account_count_switch(struct vgpu_pf *pf, uint64_t duration_ns);

/* contract.c */

/*
 * how full the token bucket of a VF is when the VF gets a cap; EMPTY at the start of the scheduler,
 * because the core does not know how much engine time the VF used before
 */
enum vgpu_bucket {
	VGPU_BUCKET_EMPTY = 0,
	VGPU_BUCKET_FULL,
};

bool vgpu_pf_run_contract_update(struct vgpu_pf *pf);
uint32_t vgpu_pf_run_contract_throttled(struct vgpu_pf *pf);
uint32_t vgpu_pf_run_contract_strict(struct vgpu_pf *pf);
bool vgpu_pf_run_contract_is_limited(const struct vgpu_pf *pf, uint32_t vf);
uint32_t vgpu_pf_run_contract_before_priority_class(struct vgpu_pf *pf, uint32_t mask,
						    uint32_t priority_class);
uint32_t vgpu_pf_run_contract_first_priority_class(struct vgpu_pf *pf, uint32_t mask);
bool vgpu_pf_run_contract_pick(struct vgpu_pf *pf, uint32_t runnable, struct vgpu_run *run);
void vgpu_pf_run_contract_limit(struct vgpu_pf *pf, struct vgpu_run *run);
void vgpu_pf_run_contract_charge(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
				 uint64_t ran, uint64_t reserved);
void vgpu_pf_run_contract_arm(struct vgpu_pf *pf);
void vgpu_pf_run_contract_activate(struct vgpu_pf *pf, enum vgpu_bucket bucket);
void vgpu_pf_run_contract_reset_vf(struct vgpu_vf *vf);

/* outlook.c: the effect of a possible slice on the lags */
enum vgpu_outlook {
	VGPU_OUTLOOK_ALLOWED = 0, /* the VF may have the slice */
	VGPU_OUTLOOK_AHEAD,	  /* the VF would be too far ahead of its share */
	VGPU_OUTLOOK_UNSAFE,	  /* a VF could fall too far behind its share */
};

/* share.c, outlook.c */
void vgpu_pf_run_share_charge(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
			      uint64_t ns, bool has_work);
void vgpu_pf_run_share_update(struct vgpu_pf *pf);
void vgpu_pf_run_share_withdraw(struct vgpu_pf *pf);
void vgpu_pf_run_share_apply(struct vgpu_pf *pf);
bool vgpu_pf_run_outlook_is_far_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf);
enum vgpu_outlook vgpu_pf_run_outlook_of(struct vgpu_pf *pf, struct vgpu_vf *vf, int64_t ns);
uint32_t vgpu_pf_run_outlook_first(struct vgpu_pf *pf, uint32_t candidates);
bool vgpu_pf_run_share_counts(const struct vgpu_vf *vf);
uint64_t vgpu_pf_run_share_weights(struct vgpu_pf *pf, uint32_t priority_class);
int64_t vgpu_pf_run_share_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_run_outlook_is_safe(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_run_share_activate(struct vgpu_pf *pf);

/* gang.c */
bool vgpu_pf_run_gang_has(const struct vgpu_vf *vf);
bool vgpu_pf_run_gang_is_confined(const struct vgpu_vf *vf);
uint64_t vgpu_pf_run_gang_next(const struct vgpu_vf *vf, uint64_t now);
void vgpu_pf_run_gang_update(struct vgpu_vf *vf, uint64_t now);
const struct vgpu_vf *vgpu_pf_run_gang_open(struct vgpu_pf *pf, uint32_t mask);

/* terms.c */
/* Get the offset of a VF's gang slots in each period. Return: ns from the start of the period. */
static inline uint64_t vgpu_pf_run_terms_phase_ns(const struct vgpu_pf_contract *terms)
{
	return terms->phase_us * VGPU_NS_PER_US;
}
int vgpu_pf_run_terms_check(struct vgpu_pf *pf, const struct vgpu_pf_contract *contracts);

#endif
