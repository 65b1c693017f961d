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
	bool is_busy;
	bool is_unwritten; /* the command could not be written to the device */
	uint32_t from, to; /* VF numbers; 0: none */
	uint8_t steps[4];  /* enum gpuiov_command */
	uint32_t step_count, step;
	uint32_t status;    /* last CMD_STATUS that was read */
	uint64_t status_ns; /* last change of the present command's status */
	uint64_t poll_delay_ns;
};

/* a table, and values that are derived from it */
struct vgpu_run_slots {
	struct vgpu_pf_run_table table; /* its weights are not all zero */
	uint32_t listed;		/* bit per VF that has an entry */
	uint64_t cycle_ns;		/* sum of the quanta */
	bool has_contracts;
	uint64_t total_us[VGPU_PF_MAX_VFS + 1];	  /* by VF number: sum of its quanta */
	uint32_t first_us[VGPU_PF_MAX_VFS + 1];	  /* by VF number: first quantum; 0: no entry */
	uint32_t reserve_us[VGPU_PF_MAX_VFS + 1]; /* by VF number: budget in a cycle; 0: none */
	uint32_t longest_us[VGPU_PF_PRIORITY_CLASSES]; /* longest quantum of its VFs */
};

/* share.c: virtual time of one priority class, in 2^-24 ns per unit of weight */
struct vgpu_run_priority_class {
	uint64_t now;
	uint64_t rest;		/* remainder of the last division that advanced now */
	uint64_t forfeited_lag; /* pool of forfeited lags, not yet shared out, in 2^-24 ns */
};

enum vgpu_scheduler_state {
	VGPU_SCHEDULER_OFF = 0,	  /* no device */
	VGPU_SCHEDULER_EMPTY,	  /* no VF is in the engine */
	VGPU_SCHEDULER_SWITCHING, /* a world switch is in progress */
	VGPU_SCHEDULER_RUNNING,	  /* a VF runs */
	VGPU_SCHEDULER_EXPIRED,	  /* a VF is in the engine, and its quantum has expired */
	VGPU_SCHEDULER_BROKEN,	  /* a command failed; the engine is polled until it is usable */
	VGPU_SCHEDULER_STATES,
};

enum vgpu_run_kind {
	VGPU_RUN_SLICE = 0,	/* its slice in the table, or its share */
	VGPU_RUN_UNCONTENDED,	/* alone with work: runs until another VF wakes */
	VGPU_RUN_IDLE_RESIDENT, /* no VF has work, and the VF stays in the engine */
	VGPU_RUN_BOOST,		/* starvation boost: a short run after too long a wait */
	VGPU_RUN_RESERVE,	/* preempted the table, from the table's reserve section */
	VGPU_RUN_CONTRACT,	/* served by the reservation of its contract */
	VGPU_RUN_KINDS,
};

/* one stay of a VF in the engine; times are of the platform's clock */
struct vgpu_run {
	uint32_t vf; /* 0: none */
	enum vgpu_run_kind kind;
	uint32_t decision;     /* row of decide.c's table, from 1, that chose the run; 0: none */
	bool is_cut;	       /* preempted: the rest of the slice is resumed */
	bool is_accounted;     /* the entry of the run log has been read, or there will be none */
	bool is_advance;       /* from the reserve section, prepaid from the VF's own entries */
	bool is_capped;	       /* the VF's tokens or slot have limited granted_ns */
	bool is_overdue;       /* the VF had waited longer than its gap: no reserve preempts it */
	uint64_t granted_ns;   /* 0: no limit */
	uint64_t quantum_ns;   /* quantum of the VF's entry */
	uint64_t started_ns;   /* end of the switch to the run */
	uint64_t contended_ns; /* start of another VF's wait; 0: none waits */
	uint64_t worked_ns; /* time from the start until the VF ran out of work; 0: it has work */
	uint64_t shared_ns; /* time from the start that share.c has counted already */
};

/* buckets of the histogram of world switch times: four for each octave of ns */
#define VGPU_SWITCH_BUCKETS 160u

/* the reason why the VF in the engine must leave before its quantum ends */
enum vgpu_preemption {
	VGPU_PREEMPT_NONE = 0,
	VGPU_PREEMPT_FOR_RESERVE, /* for the reserve section of the table, or a reservation */
	VGPU_PREEMPT_FOR_PRIORITY_CLASS, /* for a VF of a higher priority class */
	VGPU_PREEMPT_FOR_ANYONE,
};

/* tables.c: the table in force, the table that takes over next, and the cursors */
struct vgpu_run_tables {
	struct vgpu_run_slots slots[2];
	uint32_t active;    /* index in slots of the table in force */
	bool is_pending;    /* the other table takes over at the next decision */
	bool has_contracts; /* the table in force has contracts */
	/* next position of each priority class: the entries, then the VFs without an entry */
	uint32_t cursors[VGPU_PF_PRIORITY_CLASSES];
	uint64_t cycle_started_ns;
};

/* the VFs that have work: bit n - 1 for VF n */
struct vgpu_run_work {
	uint32_t busy;	    /* as last read from the device */
	bool is_fresh;	    /* busy was read after the present run began */
	uint32_t announced; /* as reported by WAKE and IDLE events */
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
	uint64_t lately_ns; /* moving mean */
	uint32_t histogram[VGPU_SWITCH_BUCKETS];
};

struct vgpu_pf_scheduler {
	enum vgpu_scheduler_state state;
	struct vgpu_run_tables tables;
	struct vgpu_run_work work;
	bool wants_decision; /* decide when the core settles, unless a VF runs */
	enum vgpu_preemption preemption;
	bool is_idle;	       /* the VF in the engine has run out of work */
	uint32_t exclusive_vf; /* VF whose full access stops the table; 0: none */
	struct vgpu_run_cut cut;
	struct vgpu_run run, next, last; /* in the engine; being switched to; before run */
	struct vgpu_run_priority_class priority_classes[VGPU_PF_PRIORITY_CLASSES];
	uint64_t decided_ns;	      /* start of the last world switch */
	uint32_t aborts;	      /* refused commands in succession */
	uint32_t mismatches;	      /* inputs that the table of machine.c does not have */
	uint64_t recover_deadline_ns; /* BROKEN: when the core resets the device */
	bool is_unknown; /* BROKEN: any VF may be in the engine (vgpu_pf_run_engine_holds()) */
	struct vgpu_run_log log;
	struct vgpu_run_switches switches;
};

#endif
