/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * State of the run-table scheduler. It is a part of struct vgpu_pf, but nobody outside this folder
 * looks into it: the rest of the core asks by the functions of run/parts.h.
 */
#ifndef VGPU_CORE_RUN_STATE_H
#define VGPU_CORE_RUN_STATE_H

#include "pf-driver/core/base/os.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/uapi/vgpu_pf.h"

/* one world switch under way, switch.c */
struct vgpu_pf_switch {
	bool is_busy;
	bool is_unwritten; /* the device did not take the command */
	uint32_t from, to; /* VF numbers; 0: none */
	uint8_t steps[4];  /* enum gpuiov_command */
	uint32_t step_count, step;
	uint32_t status;    /* last CMD_STATUS seen */
	uint64_t status_ns; /* when the status of the command in execution last changed */
	uint64_t poll_delay_ns;
};

struct vgpu_run_slots {
	uint64_t generation;
	uint32_t flags;
	uint32_t count;
	uint32_t listed;   /* bit per VF that has an entry */
	uint64_t cycle_ns; /* sum of the quanta */
	bool has_contracts;
	struct vgpu_pf_run_entry entries[VGPU_PF_TABLE_ENTRIES];
	uint64_t total_us[VGPU_PF_MAX_VFS + 1];	  /* of its entries, by VF number */
	uint32_t first_us[VGPU_PF_MAX_VFS + 1];	  /* its first entry; 0: it has none */
	uint32_t reserve_us[VGPU_PF_MAX_VFS + 1]; /* by VF number */
	struct vgpu_pf_run_entry reserve[VGPU_PF_MAX_VFS];
	uint32_t reserve_count;
	struct vgpu_pf_contract contracts[VGPU_PF_MAX_VFS];
	uint32_t weights[VGPU_PF_MAX_VFS]; /* not all of them zero */
	uint32_t max_gap_us[VGPU_PF_MAX_VFS];
	uint32_t longest_us[VGPU_PF_BANDS]; /* entry of a band's VFs */
};

/* share.c: times of one band, of 2^-24 ns for a unit of weight */
struct vgpu_run_band {
	uint64_t now;
	uint64_t rest;	 /* of the division that moved it last */
	uint64_t estate; /* 2^-24 ns that nobody is given yet */
};

enum vgpu_executor_state {
	VGPU_EXECUTOR_OFF = 0, /* no device */
	VGPU_EXECUTOR_EMPTY,   /* no VF is in the engine */
	VGPU_EXECUTOR_SWITCHING,
	VGPU_EXECUTOR_RUNNING,
	VGPU_EXECUTOR_PARKED, /* a VF is in the engine, its quantum is over */
	VGPU_EXECUTOR_BROKEN, /* a command failed, a reset frees the engine */
	VGPU_EXECUTOR_STATES,
};

enum vgpu_run_kind {
	VGPU_RUN_SLICE = 0, /* an entry of the table */
	VGPU_RUN_SOLE,	    /* nobody else has work: runs on until somebody wakes */
	VGPU_RUN_REST,	    /* nobody has work: stays in the engine */
	VGPU_RUN_RESCUE,    /* off the engine for too long: a short turn */
	VGPU_RUN_RESERVE,   /* pre-empted the table from its reserve section */
	VGPU_RUN_CONTRACT,  /* from the reservation of its contract */
	VGPU_RUN_KINDS,
};

struct vgpu_run {
	uint32_t vf; /* 0: none */
	enum vgpu_run_kind kind;
	uint32_t decision;     /* row of decide.c's table, from 1; 0: none chose it */
	bool is_cut;	       /* pre-empted: the rest of the slice is resumed */
	bool is_accounted;     /* its run log entry has been read */
	bool is_advance;       /* from the reserve, on the VF's own entries */
	bool is_capped;	       /* not longer than the VF's tokens */
	uint64_t granted_ns;   /* 0: not bounded */
	uint64_t quantum_ns;   /* of its entry */
	uint64_t started_ns;   /* our clock */
	uint64_t contended_ns; /* our clock; when somebody else began to wait; 0: nobody */
	uint64_t worked_ns;    /* until it ran out of work; 0: it did not */
	uint64_t shared_ns;    /* what share.c knows of it already */
};

/* histogram of end-to-end switch times: four buckets per octave of ns */
#define VGPU_SWITCH_BUCKETS 160u

/* why the VF in the engine shall leave it before its quantum ends */
enum vgpu_preemption {
	VGPU_PREEMPT_NONE = 0,
	VGPU_PREEMPT_FOR_RESERVE, /* of the table, or of a contract */
	VGPU_PREEMPT_FOR_BAND,	  /* one that is served before its own */
	VGPU_PREEMPT_FOR_ANYONE,
};

/* tables.c: the table in force, the one that takes over next, and whose turn it is */
struct vgpu_run_tables {
	struct vgpu_run_slots slots[2];
	uint32_t active;    /* of slots */
	bool is_pending;    /* the other table takes over at the next decision */
	bool has_contracts; /* of the table in force */
	/* next position of each band: entries, then VFs without an entry */
	uint32_t cursors[VGPU_PF_BANDS];
	uint64_t cycle_started_ns;
};

/* who has work; a bit per VF number */
struct vgpu_run_work {
	uint32_t busy;	    /* as last read from the device */
	bool is_fresh;	    /* read since the run in the engine began */
	uint32_t announced; /* as the events so far have said */
};

/* a slice that was cut and is to be continued */
struct vgpu_run_cut {
	uint32_t vf; /* 0: none */
	uint64_t left_ns;
};

/* engine.c: the device's log of runs */
struct vgpu_run_log {
	uint64_t next; /* index of the entry to be read next */
	struct vgpu_os_dma memory;
};

/* account.c: how long world switches took */
struct vgpu_run_switches {
	uint64_t count, max_ns;
	uint64_t lately_ns; /* moving mean */
	uint32_t histogram[VGPU_SWITCH_BUCKETS];
};

struct vgpu_pf_executor {
	enum vgpu_executor_state state;
	struct vgpu_run_tables tables;
	struct vgpu_run_work work;
	bool wants_decision;
	enum vgpu_preemption preemption;
	bool is_idle;	       /* the VF in the engine has no work */
	uint32_t exclusive_vf; /* stops the table; 0: none */
	struct vgpu_run_cut cut;
	struct vgpu_run run, next, last;
	struct vgpu_run_band bands[VGPU_PF_BANDS];
	uint64_t decided_ns;
	uint32_t aborts;	      /* in a row */
	uint32_t mismatches;	      /* inputs that the table of machine.c does not have */
	uint64_t recover_deadline_ns; /* BROKEN: when the device is reset */
	struct vgpu_run_log log;
	struct vgpu_run_switches switches;
};

/* tables.c: the one in force */
static inline const struct vgpu_run_slots *
vgpu_pf_run_active(const struct vgpu_pf_executor *executor)
{
	return &executor->tables.slots[executor->tables.active];
}

/* the engine is on its way from one VF to another */
static inline bool vgpu_pf_run_is_switching(const struct vgpu_pf_executor *executor)
{
	return executor->state == VGPU_EXECUTOR_SWITCHING;
}

#endif
