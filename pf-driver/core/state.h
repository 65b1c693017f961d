/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_pf has all state of the PF core. Each sub-struct belongs to one file. Files that
 * begin, restore, reset or end a VF as a whole also set the parts of that VF.
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
	VGPU_PF_TIMER_SLICE,	    /* end the running slice */
	VGPU_PF_TIMER_BULK,	    /* poll the bulk operation */
	VGPU_PF_TIMER_WATCHDOG,	    /* look for interrupts that were lost */
	VGPU_PF_TIMER_RECOVER,	    /* poll the engine after a failed command */
	VGPU_PF_TIMER_DEVICE_RESET, /* poll the reset of the device */
	VGPU_PF_TIMER_CONTRACT,	    /* a budget, a slot or tokens of a VF are due */
	VGPU_PF_TIMERS,
};

#define VGPU_PF_RECORD_BYTES 0x4000u

/* checkpoint.c: the contents of one copy of a record in PF VRAM, as far as the core knows them */
struct vgpu_pf_record {
	uint32_t known; /* number of leading bytes that are known */
	uint8_t bytes[VGPU_PF_RECORD_BYTES] __attribute__((aligned(8)));
};

/* bulk.c: an operation for the device, which executes one at a time */
struct vgpu_pf;
struct vgpu_bulk_op {
	uint32_t opcode; /* enum vgpu_hw_op */
	uint32_t vf;	 /* src or dst is an offset in the VRAM of this VF; 0: in device VRAM */
	uint32_t owner;	 /* passed to done */
	uint64_t src, dst, bytes;
	struct vgpu_os_dma *memory; /* DMA memory that the operation uses; NULL: none */
	void (*done)(struct vgpu_pf *pf, uint32_t owner, int error);
};

#define VGPU_BULK_QUEUE 32u

struct vgpu_pf_bulk {
	struct vgpu_bulk_op queue[VGPU_BULK_QUEUE];
	uint32_t head, used;
	bool is_started;
	bool is_under_way; /* the device may be executing an operation, perhaps an abandoned one */
	uint64_t started_ns;
	uint64_t poll_delay_ns;
	struct vgpu_os_dma retained; /* memory of the abandoned operation */
};

/* sizes of the buffer of a stream in bytes, vf_state.c */
#define VGPU_STREAM_BUFFER_DUMP	 0x10000u   /* longest text of a dump */
#define VGPU_STREAM_BUFFER	 0x2000000u /* the maximum; the state of 64 CUs needs less */
#define VGPU_STREAM_BUFFER_BASE	 0x100000u  /* the part that does not depend on the CUs */
#define VGPU_STREAM_BUFFER_OF_CU 0x60000u   /* one CU: VGPRs, SGPRs, LDS, waves; about 340 KiB */

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
	struct vgpu_pf_stream *payload; /* the request's payload; NULL: the client has gone */
	uint32_t step;			/* enum stream_step */
	uint64_t vram_offset;		/* next byte of VRAM to be saved or restored */
	uint32_t first, filled;		/* bytes [first, filled) of the buffer are to be moved */
	uint64_t bytes;			/* moved through the stream so far */
	bool is_waiting_device;
	bool is_changed;     /* RESTORE has written to the VF */
	bool has_left_pause; /* the VF has left its pause since the stream began */
	bool driver_loaded;  /* RESTORE: from the head of the stream */
	struct vgpu_os_dma buffer;
};

/* provision.c: a PROVISION that waits until its VRAM and page tables are clean */
struct vgpu_pf_pending_provision {
	uint32_t vf; /* 0: none */
	uint64_t token;
	struct vgpu_pf_provision *payload;
};

struct vgpu_pf_pending_verify {
	uint32_t vf;	 /* 0: none */
	uint32_t serial; /* distinguishes answers to this check from answers to earlier ones */
	uint64_t token;
	struct vgpu_range range; /* units being checked */
};

struct vgpu_finished_request {
	uint64_t token;
	int error;
	char message[VGPU_PF_NAME_BYTES * 2];
};

#define VGPU_PF_SCRATCH_BYTES 0x10000u
#define VGPU_PF_FINISHED      64u
#define VGPU_PF_TRACE	      64u

/* request.c, reply.c: the lease, and the answers to requests */
struct vgpu_pf_requests {
	uint64_t lease_holder; /* client number; 0: no client holds the lease */
	char message[160];     /* error text of the last request that failed */
	struct vgpu_finished_request finished[VGPU_PF_FINISHED];
	uint32_t finished_count;
};

/* event.c */
struct vgpu_pf_events {
	uint64_t seq; /* sequence number of the next event */
	bool has_new; /* clients have not been notified of the last events */
};

/* checkpoint.c: the two records of the checkpoint in PF VRAM, of all VFs and of the run table */
struct vgpu_pf_checkpoint {
	bool is_dirty, is_table_dirty;
	uint64_t seq, table_seq;
	struct vgpu_pf_record vf_records[2], table_records[2];
};

/* device_reset.c: the reset of the whole device */
struct vgpu_pf_device_reset {
	uint64_t count;
	bool is_due; /* a reset begins when the core settles: no smaller reset has helped */
	bool is_under_way;
	uint64_t deadline_ns;
	bool is_lost; /* the device was lost in its reset: its checkpoint is not valid any more */
};

/* timer.c: deadlines of the whole PF; 0: not set */
struct vgpu_pf_timers {
	uint64_t at_ns[VGPU_PF_TIMERS];
	uint64_t armed_ns; /* deadline to which the platform's timer is set; 0: disarmed */
};

struct vgpu_trace_line {
	uint64_t time_ns;
	uint8_t vf, from, event, to;
};

/* control.c: the last transitions of VFs, for the dump */
struct vgpu_pf_trace {
	struct vgpu_trace_line lines[VGPU_PF_TRACE];
	uint32_t used; /* transitions so far */
};

struct vgpu_pf {
	struct vgpu_os *os;
	struct vgpu_pf_params params;
	struct vgpu_pf_device device;
	bool was_attached; /* an attach has succeeded: the VFs below are those of the device */
	struct vgpu_range_map vram;
	struct vgpu_vf vfs[VGPU_PF_MAX_VFS + 1]; /* by number; 0 is the PF */
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
	uint8_t scratch[VGPU_PF_SCRATCH_BYTES] __attribute__((aligned(8)));
};

#endif
