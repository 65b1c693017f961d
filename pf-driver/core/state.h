/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All state of the PF core: struct vgpu_pf, one sub-struct per file that owns it. Parts of a VF are
 * set by their own files, and by those that begin, restore, reset or end a VF as a whole.
 */
#ifndef VGPU_CORE_STATE_H
#define VGPU_CORE_STATE_H

#include "pf-driver/core/base/vf.h"
#include "pf-driver/core/pf.h"
#include "pf-driver/core/resource/range.h"
#include "pf-driver/core/run/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* timers of the whole PF; those of a VF are in vf.h */
enum vgpu_pf_timer_id {
	VGPU_PF_TIMER_SWITCH = 0, /* look at a command that may have finished */
	VGPU_PF_TIMER_SLICE,	  /* the running slice must end */
	VGPU_PF_TIMER_BULK,	  /* look at a bulk operation */
	VGPU_PF_TIMER_WATCHDOG,	  /* an interrupt may have been lost */
	VGPU_PF_TIMER_RECOVER,	  /* the engine after a failed command */
	VGPU_PF_TIMER_DEVICE_RESET,
	VGPU_PF_TIMER_CONTRACT, /* a VF gets its next budget, or has tokens again */
	VGPU_PF_TIMERS,
};

#define VGPU_PF_RECORD_BYTES 0x4000u

/* journal.c: what a copy of a record in PF VRAM holds, as far as it is known */
struct vgpu_pf_record {
	uint32_t known; /* bytes */
	uint8_t bytes[VGPU_PF_RECORD_BYTES] __attribute__((aligned(8)));
};

/* bulk.c: operations of the device, one at a time */
struct vgpu_pf;
struct vgpu_bulk_op {
	uint32_t opcode; /* enum vgpu_hw_op */
	uint32_t vf;	 /* whose VRAM src or dst counts; 0: device VRAM */
	uint32_t owner;	 /* handed to done */
	uint64_t src, dst, bytes;
	struct vgpu_os_dma *memory; /* of ours that it is done with; NULL: none */
	void (*done)(struct vgpu_pf *pf, uint32_t owner, int error);
};

#define VGPU_BULK_QUEUE 32u

struct vgpu_pf_bulk {
	struct vgpu_bulk_op queue[VGPU_BULK_QUEUE];
	uint32_t head, used;
	bool is_started;
	bool is_under_way; /* on the device, for all we know; perhaps given up by us */
	uint64_t started_ns;
	uint64_t poll_delay_ns;
	struct vgpu_os_dma kept; /* memory of the one that was given up */
};

/* the one SAVE, RESTORE or DUMP under way, vf_state.c and dump.c */
#define VGPU_STREAM_BUFFER_DUMP	 0x10000u   /* what a dump can hold */
#define VGPU_STREAM_BUFFER	 0x2000000u /* at most: room for the state of 64 CUs, and more */
#define VGPU_STREAM_BUFFER_BASE	 0x100000u  /* what does not grow with the CUs */
#define VGPU_STREAM_BUFFER_OF_CU 0x60000u   /* VGPRs, SGPRs, LDS and waves: about 340 KiB */

enum vgpu_stream_kind {
	VGPU_STREAM_NONE = 0,
	VGPU_STREAM_SAVE,
	VGPU_STREAM_RESTORE,
	VGPU_STREAM_DUMP,
};

struct vgpu_pf_stream_job {
	enum vgpu_stream_kind kind;
	uint32_t vf;
	uint64_t token;
	struct vgpu_pf_stream *payload; /* of the request; bytes is filled in */
	uint32_t step;			/* of the kind's own steps */
	uint64_t vram_offset;		/* next byte of VRAM */
	uint32_t first, filled;		/* part of the buffer that is to be moved */
	uint64_t bytes;			/* through the stream so far */
	bool is_waiting_device;
	bool is_changed;     /* RESTORE has written to the VF */
	bool has_left_pause; /* the VF, since the stream began: what was moved is of another time */
	bool driver_loaded;  /* RESTORE: as the stream's head says */
	struct vgpu_os_dma buffer;
};

/* a PROVISION that waits until its VRAM is clean */
struct vgpu_pf_pending_provision {
	uint32_t vf; /* 0: none */
	uint64_t token;
	struct vgpu_pf_provision *payload;
};

struct vgpu_pf_pending_verify {
	uint32_t vf;	 /* 0: none */
	uint32_t serial; /* of this one */
	uint64_t token;
	struct vgpu_range range;
};

struct vgpu_finished_request {
	uint64_t token;
	int error;
	char message[VGPU_PF_NAME_BYTES * 2];
};

#define VGPU_PF_SCRATCH_BYTES 0x10000u
#define VGPU_PF_FINISHED      64u
#define VGPU_PF_TRACE	      64u

/* request.c, reply.c: what clients have asked for */
struct vgpu_pf_requests {
	uint64_t lease_holder; /* client number; 0: nobody holds the lease */
	char message[160];     /* why the last request failed */
	struct vgpu_finished_request finished[VGPU_PF_FINISHED];
	uint32_t finished_count;
};

/* event.c */
struct vgpu_pf_events {
	uint64_t seq; /* of the next event */
	bool has_new;
};

/* journal.c: the records in PF VRAM, of the VFs and of the run table */
struct vgpu_pf_journal {
	bool is_dirty, is_table_dirty;
	uint64_t seq, table_seq;
	struct vgpu_pf_record vf_records[2], table_records[2];
};

/* pf.c: a reset of the device as a whole */
struct vgpu_pf_whole_reset {
	uint64_t count;
	bool is_wanted; /* nothing less has helped */
	bool is_under_way;
	uint64_t deadline_ns;
	bool is_lost; /* what comes back has forgotten everything */
};

/* timer.c: those of the whole PF */
struct vgpu_pf_timers {
	uint64_t at_ns[VGPU_PF_TIMERS];
	uint64_t armed_ns; /* what the home's timer is set to */
};

struct vgpu_trace_line {
	uint64_t time_ns;
	uint8_t vf, from, event, to;
};

/* control.c: the last transitions of VFs, for the dump */
struct vgpu_pf_trace {
	struct vgpu_trace_line lines[VGPU_PF_TRACE];
	uint32_t used;
};

struct vgpu_pf {
	struct vgpu_os *os;
	struct vgpu_pf_params params;
	struct vgpu_pf_device device;
	bool was_attached; /* an earlier attach succeeded: VFs in memory are the truth */
	struct vgpu_range_map vram;
	struct vgpu_vf vfs[VGPU_PF_MAX_VFS + 1]; /* by number; 0 is the PF */
	struct vgpu_pf_switch sw;
	struct vgpu_pf_executor executor;
	struct vgpu_pf_bulk bulk;
	struct vgpu_pf_stream_job stream;
	struct vgpu_pf_pending_provision provision;
	struct vgpu_pf_pending_verify verify;
	struct vgpu_pf_requests requests;
	struct vgpu_pf_events events;
	struct vgpu_pf_journal journal;
	struct vgpu_pf_whole_reset whole_reset;
	struct vgpu_pf_timers timers;
	struct vgpu_pf_trace trace;
	uint64_t table_generation; /* of the run table in force */
	uint8_t scratch[VGPU_PF_SCRATCH_BYTES] __attribute__((aligned(8)));
};

#ifdef __cplusplus
}
#endif

#endif
