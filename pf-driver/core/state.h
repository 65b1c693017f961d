/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_pf has all state of the PF core, so that the platform allocates one piece of memory.
 * The comment before a sub-struct names the files to which this sub-struct belongs. Other files
 * write only a few of its members; for example, a file that requests a device reset sets
 * device_reset.is_due.
 */
#ifndef VGPU_CORE_STATE_H
#define VGPU_CORE_STATE_H

#include "pf-driver/core/base/vf.h"
#include "pf-driver/core/pf.h"
#include "pf-driver/core/resource/range.h"
#include "pf-driver/core/run/state.h"

/* timers of the whole PF, and their actions; vf.h has the timers of a VF */
enum vgpu_pf_timer_id {
	VGPU_PF_TIMER_SWITCH = 0,   /* poll the command of a world switch */
	VGPU_PF_TIMER_SLICE,	    /* end the run of the VF in the engine */
	VGPU_PF_TIMER_BULK,	    /* poll the bulk operation */
	VGPU_PF_TIMER_WATCHDOG,	    /* check for lost interrupts */
	VGPU_PF_TIMER_RECOVER,	    /* poll a broken engine until it is usable */
	VGPU_PF_TIMER_DEVICE_RESET, /* poll the reset of the device */
	VGPU_PF_TIMER_CONTRACT,	    /* add budgets or tokens, or open a gang slot, when due */
	VGPU_PF_TIMERS,
};

/* room for a record of the checkpoint and its head (struct checkpoint_head in vf/checkpoint.c) */
#define VGPU_PF_RECORD_BYTES 0x4000u

/*
 * checkpoint.c: what the core knows about the contents of one copy of a record in PF VRAM (struct
 * vgpu_pf_checkpoint)
 */
struct vgpu_pf_record {
	uint32_t known; /* number of leading bytes that are the same in contents[] and the copy */
	uint8_t contents[VGPU_PF_RECORD_BYTES] __attribute__((aligned(8)));
};

struct vgpu_pf;

/* a bulk operation of the device (gpuiov.h); the device executes one at a time */
struct vgpu_bulk_op {
	uint32_t opcode; /* enum vgpu_hw_op */
	uint32_t vf;	 /* VF whose state or VRAM is used; 0: VRAM offsets are device offsets */
	uint32_t owner;	 /* argument of done() */
	/* src, dst: VRAM offset or bus address, as opcode requires; bytes: length */
	uint64_t src, dst, bytes;
	/*
	 * DMA memory that the operation uses; NULL: none. If the core abandons the operation while
	 * the device may still execute it, bulk.c takes the memory over and sets memory->cpu to
	 * NULL.
	 */
	struct vgpu_os_dma *memory;
	/* called once, at the end of the operation; error: 0 or negative errno */
	void (*done)(struct vgpu_pf *pf, uint32_t owner, int error);
};

#define VGPU_BULK_QUEUE 32u /* capacity of the queue */

/* bulk.c: the queue of operations */
struct vgpu_pf_bulk {
	struct vgpu_bulk_op queue[VGPU_BULK_QUEUE];
	uint32_t head;		/* index of the first operation */
	uint32_t used;		/* number of operations */
	bool is_started;	/* true if the operation at the head was given to the device */
	bool is_under_way;	/* true if the device may still execute an operation */
	uint64_t started_ns;	/* start of the operation at the head */
	uint64_t poll_delay_ns; /* delay to which the poll timer is set next */
	/* memory that an abandoned operation may still use; retained.cpu NULL: none */
	struct vgpu_os_dma retained;
};

/*
 * stream.c: sizes of a stream's buffer in bytes. SAVE and RESTORE begin with
 * BASE + OF_CU * (CUs of the device), but at most MAX.
 */
#define VGPU_STREAM_BUFFER_DUMP	 0x10000u   /* for DUMP: longest text */
#define VGPU_STREAM_BUFFER_MAX	 0x2000000u /* more than the state of 64 CUs */
#define VGPU_STREAM_BUFFER_BASE	 0x100000u  /* for state that does not depend on the CUs */
#define VGPU_STREAM_BUFFER_OF_CU 0x60000u   /* for one CU, whose state is about 340 KiB */

enum vgpu_stream_kind {
	VGPU_STREAM_NONE = 0,
	VGPU_STREAM_SAVE,
	VGPU_STREAM_RESTORE,
	VGPU_STREAM_DUMP,
};

/* stream.c, restore.c: the stream in progress */
struct vgpu_pf_stream_job {
	enum vgpu_stream_kind kind;
	uint32_t vf;			/* 0: DUMP */
	uint64_t token;			/* token of the request */
	struct vgpu_pf_stream *request; /* payload of the request; NULL: the client is gone */
	uint32_t step;			/* enum stream_step (vf/stream.h) */
	uint64_t vram_offset;		/* next byte of VRAM to be saved or restored */
	uint32_t first;			/* buffer offset of the first byte still to be moved */
	uint32_t filled;		/* buffer offset after the last of these bytes */
	uint64_t bytes;			/* bytes moved through the stream so far */
	bool is_waiting_device;		/* true while the stream waits for its bulk operation */
	bool is_changed; /* true if RESTORE has changed the VF, and no reset of the VF followed */
	/* true if the VF has left its pause or was reset in its pause since the stream began */
	bool is_broken;
	bool driver_loaded; /* RESTORE: true if the saved VF had a loaded driver */
	struct vgpu_os_dma buffer;
};

/* provision.c: a PROVISION that waits until its VRAM and page tables are clean */
struct vgpu_pf_pending_provision {
	uint32_t vf; /* 0: none */
	uint64_t token;
	struct vgpu_pf_provision *payload; /* NULL: the client is gone */
};

/* scrub.c: a VERIFY_ZERO that waits for the device */
struct vgpu_pf_pending_verify {
	uint32_t vf;	 /* 0: none */
	uint32_t serial; /* distinguishes answers to this check from answers to earlier ones */
	uint64_t token;
	struct vgpu_range range; /* units being checked */
};

/* a request that returned -EINPROGRESS and has ended, but whose end is not reported yet */
struct vgpu_finished_request {
	uint64_t token;
	int error;
	char message[VGPU_PF_MESSAGE_BYTES];
};

#define VGPU_PF_SCRATCH_BYTES 0x10000u
/* more requests than can end in one call: one per VF, PROVISION, VERIFY_ZERO and one stream */
#define VGPU_PF_FINISHED 64u
#define VGPU_PF_TRACE	 64u /* transitions that the core keeps for the dump */

/* request.c, reply.c, text.c: the policy lease, and the answers to requests */
struct vgpu_pf_requests {
	uint64_t lease_holder;		     /* client number; 0: no client holds the lease */
	char message[VGPU_PF_MESSAGE_BYTES]; /* latest error text; a new request clears it */
	struct vgpu_finished_request finished[VGPU_PF_FINISHED];
	uint32_t finished_count;
};

/* event.c */
struct vgpu_pf_events {
	uint64_t seq; /* sequence number of the next event */
	bool has_new; /* true if events were pushed since the last call of events_notify() */
};

/*
 * checkpoint.c: the checkpoint in PF VRAM has two records, one of all VFs and one of the run table.
 * Each record has two copies, which the core writes in turn.
 */
struct vgpu_pf_checkpoint {
	bool is_dirty;	     /* true if the record of the VFs in VRAM is out of date */
	bool is_table_dirty; /* true if the record of the run table in VRAM is out of date */
	uint64_t seq;	     /* sequence number of the newest copy of the record of the VFs */
	uint64_t table_seq;  /* sequence number of the newest copy of the record of the run table */
	struct vgpu_pf_record vf_records[2];	/* the copies of the record of the VFs */
	struct vgpu_pf_record table_records[2]; /* the copies of the record of the run table */
};

/* device_reset.c, pf.c: the reset of the whole device */
struct vgpu_pf_device_reset {
	uint64_t count; /* resets of the device that this core has begun */
	bool is_due; /* true if the core must reset the device when it next does the pending work */
	bool is_under_way;
	uint64_t deadline_ns; /* is_under_way: when the core declares the device lost */
	/* true if the device was lost in its reset: the next attach ignores the checkpoint */
	bool is_lost;
};

/* timer.c: deadlines of the whole PF; 0: not set */
struct vgpu_pf_timers {
	uint64_t at_ns[VGPU_PF_TIMERS];
	uint64_t armed_ns; /* deadline to which the core has set the platform's timer; 0: none */
};

/* one transition of a VF's life cycle */
struct vgpu_trace_line {
	uint64_t time_ns;
	/* from, to: enum vgpu_pf_vf_state; event: enum vgpu_vf_event */
	uint8_t vf, from, event, to;
};

/* control.c: the last transitions of VFs, for the dump */
struct vgpu_pf_trace {
	struct vgpu_trace_line lines[VGPU_PF_TRACE];
	uint32_t total; /* transitions so far; number n, from 0, is at lines[n % VGPU_PF_TRACE] */
};

struct vgpu_pf {
	struct vgpu_os *os;
	struct vgpu_pf_params params;
	struct vgpu_pf_device device;
	bool was_attached; /* true after the first attach; later attaches refuse another device */
	struct vgpu_range_map vram;
	struct vgpu_vf vfs[VGPU_PF_MAX_VFS + 1]; /* by VF number; vfs[0] is the PF */
	struct vgpu_pf_switch sw;
	struct vgpu_pf_scheduler scheduler;
	struct vgpu_pf_bulk bulk;
	struct vgpu_pf_stream_job stream;
	struct vgpu_pf_pending_provision provision;
	struct vgpu_pf_pending_verify verify;
	struct vgpu_pf_requests requests;
	struct vgpu_pf_events events;
	struct vgpu_pf_checkpoint checkpoint;
	struct vgpu_pf_device_reset device_reset;
	struct vgpu_pf_timers timers;
	struct vgpu_pf_trace trace;
	uint64_t table_generation; /* generation of the run table in force */
	/* temporary buffer for contents of VRAM; any call of another function may overwrite it */
	uint8_t scratch[VGPU_PF_SCRATCH_BYTES] __attribute__((aligned(8)));
};

#endif
