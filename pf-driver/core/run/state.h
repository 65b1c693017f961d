/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Private state of the run-table scheduler. It is a part of struct vgpu_pf, but files outside this
 * folder do not access it: they call the functions of run/parts.h.
 */
#ifndef VGPU_CORE_RUN_STATE_H
#define VGPU_CORE_RUN_STATE_H

#include "pf-driver/core/base/os.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/uapi/vgpu_pf.h"

/* switch.c: the world switch in progress */
struct vgpu_pf_switch {
	bool is_busy;	   /* true while a world switch is in progress */
	bool is_unwritten; /* true if the command could not be written to the device */
	uint32_t from;	   /* the VF that leaves the engine; 0: none */
	uint32_t to;	   /* the VF that comes into the engine; 0: none */
	uint8_t steps[4];  /* commands of the switch, enum gpuiov_command */
	uint32_t step_count;
	uint32_t step;		/* index of the present command */
	uint32_t status;	/* last CMD_STATUS that was read */
	uint64_t status_ns;	/* when the status of the present command last changed */
	uint64_t poll_delay_ns; /* time until the next poll of the command */
};

/* tables.c: a run table, and values that are derived from this table */
struct vgpu_run_indexed_table {
	struct vgpu_pf_run_table table; /* with weights, which are derived if the client set none */
	uint32_t listed;		/* bit per VF that has an entry */
	uint64_t cycle_ns;		/* sum of the quanta of all entries */
	bool has_contracts;
	uint64_t total_us[VGPU_PF_MAX_VFS + 1]; /* by VF number: sum of the VF's quanta */
	/* by VF number: quantum of the VF's first entry; 0: the VF has no entry */
	uint32_t first_us[VGPU_PF_MAX_VFS + 1];
	/* by VF number: reserve budget of the VF in a cycle; 0: none */
	uint32_t reserve_us[VGPU_PF_MAX_VFS + 1];
	uint32_t longest_us[VGPU_PF_PRIORITY_CLASSES]; /* by class: longest quantum */
};

/* share.c: virtual time of one priority class, in 2^-24 ns per unit of weight */
struct vgpu_run_priority_class {
	uint64_t now;		/* V in share.c */
	uint64_t remainder;	/* remainder of the last division of service by the weights */
	uint64_t forfeited_lag; /* pool of forfeited lags, not yet shared out, in 2^-24 ns */
};

enum vgpu_scheduler_state {
	VGPU_SCHEDULER_OFF = 0,	  /* no device */
	VGPU_SCHEDULER_EMPTY,	  /* no VF is in the engine */
	VGPU_SCHEDULER_SWITCHING, /* a world switch is in progress */
	VGPU_SCHEDULER_RUNNING,	  /* a VF runs */
	VGPU_SCHEDULER_EXPIRED,	  /* a VF is in the engine, and its quantum has expired */
	VGPU_SCHEDULER_BROKEN,	  /* the engine is not usable; the core polls it (machine.c) */
	VGPU_SCHEDULER_STATES,
};

enum vgpu_run_kind {
	VGPU_RUN_SLICE = 0,	/* a slice of the VF, by an entry of the table or by weight */
	VGPU_RUN_UNCONTENDED,	/* long quanta, because no other VF has work or may run */
	VGPU_RUN_IDLE_RESIDENT, /* no VF has work, and the VF stays in the engine */
	VGPU_RUN_BOOST,		/* starvation boost: a short run after too long a wait */
	VGPU_RUN_RESERVE,	/* an early run from the table's reserve section */
	VGPU_RUN_CONTRACT,	/* served from the VF's reservation, or in the VF's gang slot */
	VGPU_RUN_KINDS,
};

/* one run: a period of a VF in the engine; times are by the platform's clock */
struct vgpu_run {
	uint32_t vf; /* 0: none */
	enum vgpu_run_kind kind;
	uint32_t decision;     /* row (from 1) of decide.c's table that chose the run; 0: none */
	bool is_cut;	       /* true if the run was preempted, and its rest is to be resumed */
	bool is_accounted;     /* true if the run's log entry has been read, or will never come */
	bool is_advance;       /* true if a reserve run uses quanta of the VF's own later entries */
	bool is_limited;       /* true if the VF's tokens or slot limit granted_ns */
	bool is_overdue;       /* true if the VF had waited too long: no reserve run cuts its run */
	uint64_t granted_ns;   /* longest duration; 0: no limit */
	uint64_t quantum_ns;   /* quantum of the VF in the run table */
	uint64_t started_ns;   /* end of the switch to the run */
	uint64_t contended_ns; /* endless run: when another VF began to wait; 0: no VF waits */
	uint64_t worked_ns;    /* from the start until the VF ran out of work; 0: the VF has work */
	uint64_t shared_ns;    /* time from the start that share.c has charged already */
};

/* buckets of the histogram of world switch times: four for each octave of ns */
#define VGPU_SWITCH_BUCKETS 160u

/* the reason why the VF in the engine must leave before its quantum ends */
enum vgpu_preemption {
	VGPU_PREEMPT_NONE = 0,
	VGPU_PREEMPT_FOR_RESERVE,	 /* for a reservation, gang slot or the reserve section */
	VGPU_PREEMPT_FOR_PRIORITY_CLASS, /* for a VF of a higher priority class */
	VGPU_PREEMPT_FOR_ANYONE,	 /* for the VF that the table in decide.c chooses */
};

/* tables.c: the table in force, the table that takes over next, and the cursors */
struct vgpu_run_tables {
	struct vgpu_run_indexed_table indexed[2];
	uint32_t active;    /* index in indexed[] of the table in force */
	bool is_pending;    /* true if the other table takes over at the next decision */
	bool has_contracts; /* true if the table in force has contracts */
	/* by class: next position; positions after the last entry stand for VFs without an entry */
	uint32_t cursors[VGPU_PF_PRIORITY_CLASSES];
	uint64_t cycle_started_ns;
};

/* the VFs that have work: bit n - 1 for VF n */
struct vgpu_run_work {
	uint32_t busy;	    /* as last read from the device */
	bool is_fresh;	    /* true if the busy bits were read after the present run began */
	uint32_t announced; /* as clients know it from the events WAKE, IDLE and RUN */
};

/* a slice that was cut and is to be resumed */
struct vgpu_run_cut {
	uint32_t vf; /* 0: none */
	uint64_t left_ns;
};

/* account.c: the ring in which the device logs runs */
struct vgpu_run_log {
	uint64_t next; /* index of the entry to be read next */
	struct vgpu_os_dma memory;
};

/* account.c: durations of world switches */
struct vgpu_run_switches {
	uint64_t count, max_ns;
	uint64_t mean_ns; /* moving mean */
	uint32_t histogram[VGPU_SWITCH_BUCKETS];
};

/* the files of run/: all state of the scheduler, except the world switch in progress */
struct vgpu_pf_scheduler {
	enum vgpu_scheduler_state state;
	struct vgpu_run_tables tables;
	struct vgpu_run_work work;
	bool is_decision_due; /* true if the core must choose a VF; ignored while a VF runs */
	enum vgpu_preemption preemption;
	bool is_idle;	       /* true if the VF in the engine has run out of work */
	uint32_t exclusive_vf; /* VF in exclusive full access; 0: none */
	struct vgpu_run_cut cut;
	struct vgpu_run run;  /* the run of the VF in the engine */
	struct vgpu_run next; /* the run that the world switch begins */
	struct vgpu_run last; /* the run before the present one */
	struct vgpu_run_priority_class priority_classes[VGPU_PF_PRIORITY_CLASSES];
	uint64_t decided_ns;	      /* when the last world switch began */
	uint32_t aborts;	      /* refused commands in succession */
	uint32_t mismatches;	      /* number of inputs without a cell in machine.c's table */
	uint64_t recover_deadline_ns; /* BROKEN: when the core resets the device */
	bool is_unknown;	      /* BROKEN: true if any VF may be in the engine */
	struct vgpu_run_log log;
	struct vgpu_run_switches switches;
};

#endif
