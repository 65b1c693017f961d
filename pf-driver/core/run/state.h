/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Private state of the run-table scheduler, which machine.c introduces. This state is a part of
 * struct vgpu_pf, but files outside this folder do not access it: they call the functions of
 * run/parts.h. Points in time are in ns of the platform's clock (CLOCK_MONOTONIC).
 */
#ifndef VGPU_CORE_RUN_STATE_H
#define VGPU_CORE_RUN_STATE_H

#include "pf-driver/core/base/os.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/uapi/vgpu_pf.h"

/* switch.c: the world switch in progress */
struct vgpu_pf_switch {
	bool is_busy;	   /* true while a world switch is in progress */
	bool is_unwritten; /* true if the write of the present command to the device failed */
	uint32_t from;	   /* the VF that leaves the engine; 0: no VF */
	uint32_t to;	   /* the VF that enters the engine; 0: no VF */
	uint8_t steps[4];  /* commands of the switch, enum gpuiov_command */
	uint32_t step_count;
	uint32_t step;		/* index in steps[] of the present command */
	uint32_t status;	/* last CMD_STATUS (enum gpuiov_status); PENDING at first */
	uint64_t status_ns;	/* when the present command was written, or `status` last changed */
	uint64_t poll_delay_ns; /* time until the next poll of the command */
};

/* tables.c: a run table, and values that are derived from this table */
struct vgpu_run_indexed_table {
	struct vgpu_pf_run_table table; /* if the client set no weights, tables.c derives them */
	uint32_t listed;		/* bit n - 1: VF n has an entry */
	uint64_t cycle_ns;		/* sum of the quanta of all entries */
	bool has_contracts;		/* true if any contract has a member that is not 0 */
	uint64_t total_us[VGPU_PF_MAX_VFS + 1]; /* by VF number: sum of the VF's quanta */
	/* by VF number: quantum of the VF's first entry; 0: the VF has no entry */
	uint32_t first_us[VGPU_PF_MAX_VFS + 1];
	/* by VF number: budget of the VF in the reserve section; 0: none */
	uint32_t reserve_us[VGPU_PF_MAX_VFS + 1];
	uint32_t longest_us[VGPU_PF_PRIORITY_CLASSES]; /* by class: longest quantum of an entry */
};

/* share.c: virtual time and forfeited lag of one priority class */
struct vgpu_run_priority_class {
	uint64_t now;		/* V in share.c, in 2^-24 ns per unit of weight; wraps */
	uint64_t remainder;	/* of the last division of service by the weights, in 2^-24 ns */
	uint64_t forfeited_lag; /* pool of forfeited lags, not yet shared out, in 2^-24 ns */
};

enum vgpu_scheduler_state {
	VGPU_SCHEDULER_OFF = 0,	  /* not started, or stopped, such as during a device reset */
	VGPU_SCHEDULER_EMPTY,	  /* no VF is in the engine */
	VGPU_SCHEDULER_SWITCHING, /* a world switch is in progress */
	VGPU_SCHEDULER_RUNNING,	  /* a VF is in the engine, and its run has not ended */
	VGPU_SCHEDULER_EXPIRED,	  /* a VF is in the engine, parked: its run has ended */
	VGPU_SCHEDULER_BROKEN,	  /* the engine is not usable; the core polls it (machine.c) */
	VGPU_SCHEDULER_STATES,
};

/*
 * why a run (a period of a VF in the engine) was chosen; UNCONTENDED and IDLE_RESIDENT runs are
 * called endless: their VF may stay in the engine until another VF waits
 */
enum vgpu_run_kind {
	/* a slice (by entry, by deadline, or of a late VF), or the rest of a cut slice (pick.c) */
	VGPU_RUN_SLICE = 0,
	/* long quanta: in exclusive full access, or no VF of the same or a higher class competes */
	VGPU_RUN_UNCONTENDED,
	VGPU_RUN_IDLE_RESIDENT, /* no VF with work may run, so the VF in the engine stays there */
	VGPU_RUN_BOOST,		/* a short, early run of a VF that would otherwise wait too long */
	VGPU_RUN_RESERVE,	/* an early run from the VF's reserve budget (pick.c) */
	VGPU_RUN_CONTRACT,	/* a run from the VF's reservation, or in its gang slot */
	VGPU_RUN_KINDS,
};

/* one run: a period of a VF in the engine */
struct vgpu_run {
	uint32_t vf; /* 0: no VF */
	enum vgpu_run_kind kind;
	uint32_t decision; /* row number (from 1) in decisions[] of decide.c; 0: none */
	bool is_cut;	   /* true if the run was preempted, and the core may resume its rest */
	bool is_accounted; /* true if the log entry of the run was read, or will never come */
	bool is_advance;   /* RESERVE: true if the run is an advance on the VF's slices (pick.c) */
	bool is_limited;   /* true if a cap or gang slots limited the VF when the run was chosen */
	/* true if the VF was overdue (pick.c) when chosen; then no RESERVE run preempts this run */
	bool is_overdue;
	uint64_t granted_ns;   /* longest duration; 0: no limit */
	uint64_t quantum_ns;   /* quantum of an entry of the VF; default if no entry; 0: no VF */
	uint64_t started_ns;   /* end of the world switch that began the run */
	uint64_t contended_ns; /* endless run: when another VF began to wait; 0: no VF waits */
	uint64_t worked_ns;    /* time from the start until is_idle was set; 0: not idle */
	uint64_t charged_ns;   /* time from the start that share.c has charged already */
};

/* buckets of the histogram of world switch durations (bucket_of() in account.c) */
#define VGPU_SWITCH_BUCKETS 160u

/* why the core makes a decision before the run of the VF in the engine has ended (preempt.c) */
enum vgpu_preemption {
	VGPU_PREEMPT_NONE = 0,
	VGPU_PREEMPT_FOR_URGENT,	 /* for a reservation, a gang slot or a reserve budget */
	VGPU_PREEMPT_FOR_PRIORITY_CLASS, /* for a VF of a higher priority class */
	VGPU_PREEMPT_FOR_ANYONE,	 /* for any VF that decide.c chooses */
};

/* tables.c: the table in force, the table that takes over next, and the cursors */
struct vgpu_run_tables {
	struct vgpu_run_indexed_table indexed[2];
	uint32_t active;    /* index in indexed[] of the table in force */
	bool is_pending;    /* true if the other table takes over at the next decision */
	bool has_contracts; /* true if the table in force has contracts */
	/* by class: position of the next entry (entry_at_cursor() in pick.c) */
	uint32_t cursors[VGPU_PF_PRIORITY_CLASSES];
	uint64_t cycle_started_ns; /* when the reserve budgets were last refilled */
};

/* the VFs that have work: bit n - 1 for VF n */
struct vgpu_run_work {
	uint32_t busy; /* as last read from the device */
	/*
	 * true if `busy` was read since the present run began; false again when a run ends because
	 * its VF has no work
	 */
	bool is_fresh;
	/* the VFs that have work and tokens according to the events WAKE, IDLE and RUN so far */
	uint32_t announced;
};

/* the slice that was cut and whose rest the core may resume */
struct vgpu_run_cut {
	uint32_t vf;	  /* 0: none */
	uint64_t left_ns; /* rest of the slice */
};

/* account.c: the ring in which the device logs runs */
struct vgpu_run_log {
	uint64_t next; /* entries read so far; the next one is at next % RUN_LOG_ENTRIES */
	struct vgpu_os_dma memory; /* cpu NULL: no ring */
};

/* account.c: durations of world switches */
struct vgpu_run_switches {
	uint64_t count, max_ns;
	uint64_t mean_ns; /* moving mean; each duration counts as at most SWITCH_MEAN_MAX_NS */
	uint64_t histogram[VGPU_SWITCH_BUCKETS];
};

/* state of the scheduler, except struct vgpu_pf_switch and the state of each VF (base/vf.h) */
struct vgpu_pf_scheduler {
	enum vgpu_scheduler_state state;
	struct vgpu_run_tables tables;
	struct vgpu_run_work work;
	bool is_decision_due; /* true if the core must choose a VF; used in EMPTY and EXPIRED */
	enum vgpu_preemption preemption;
	/*
	 * true if the VF in the engine ran out of work in this run, and does not keep its entry or
	 * slot without work
	 */
	bool is_idle;
	uint32_t exclusive_vf; /* VF in exclusive full access; 0: none */
	struct vgpu_run_cut cut;
	struct vgpu_run run;  /* the run of the VF in the engine */
	struct vgpu_run next; /* the run that the world switch begins */
	struct vgpu_run last; /* the run before the present one */
	struct vgpu_run_priority_class priority_classes[VGPU_PF_PRIORITY_CLASSES];
	uint64_t decided_ns; /* when the last world switch began */
	/* commands refused since the last complete switch, except those while a VF was stalled */
	uint32_t aborts;
	uint32_t mismatches;	      /* inputs for which machine.c's table has no cell */
	uint64_t recover_deadline_ns; /* BROKEN: when polling ends with a device reset */
	bool is_vf_unknown;	      /* BROKEN: true if any VF may be in the engine */
	struct vgpu_run_log log;
	struct vgpu_run_switches switches;
};

#endif
