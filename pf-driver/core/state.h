/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_pf has all state of the PF core. The comment before a sub-struct names the files to
 * which this sub-struct belongs. Other files write single members: flags that request work, such as
 * device_reset.is_due, and members about a VF that they provision, restore, reset or release.
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
	VGPU_PF_TIMER_WATCHDOG,	    /* check for lost interrupts */
	VGPU_PF_TIMER_RECOVER,	    /* poll a broken engine until it is usable */
	VGPU_PF_TIMER_DEVICE_RESET, /* poll the reset of the device */
	VGPU_PF_TIMER_CONTRACT,	    /* add budgets or tokens, or open a gang slot, when due */
	VGPU_PF_TIMERS,
};

#define VGPU_PF_RECORD_BYTES 0x4000u

/* checkpoint.c: what the core knows about the contents of one copy of a record in PF VRAM */
struct vgpu_pf_record {
	uint32_t known; /* number of leading bytes that are the same in contents[] and the copy */
	uint8_t contents[VGPU_PF_RECORD_BYTES] __attribute__((aligned(8)));
};

struct vgpu_pf;

/* an operation for the device, which executes one operation at a time */
struct vgpu_bulk_op {
	uint32_t opcode; /* enum vgpu_hw_op */
	uint32_t vf;	 /* VF whose state or VRAM is used; 0: VRAM offsets are device offsets */
	uint32_t owner;	 /* argument of done() */
	uint64_t src, dst, bytes;   /* VRAM offsets or bus addresses; length */
	struct vgpu_os_dma *memory; /* DMA memory that the operation uses; NULL: none */
	void (*done)(struct vgpu_pf *pf, uint32_t owner, int error);
};

#define VGPU_BULK_QUEUE 32u

/* bulk.c: the queue of operations */
struct vgpu_pf_bulk {
	struct vgpu_bulk_op queue[VGPU_BULK_QUEUE];
	uint32_t head;	   /* index of the first operation */
	uint32_t used;	   /* number of operations */
	bool is_started;   /* true if the operation at the head was given to the device */
	bool is_under_way; /* true if the device may still execute an operation */
	uint64_t started_ns;
	uint64_t poll_delay_ns;
	struct vgpu_os_dma retained; /* memory that the abandoned operation may still use */
};

/* stream.c: sizes in bytes of the buffer of a stream */
#define VGPU_STREAM_BUFFER_DUMP	 0x10000u   /* longest text of a dump */
#define VGPU_STREAM_BUFFER	 0x2000000u /* the maximum; more than the state of 64 CUs */
#define VGPU_STREAM_BUFFER_BASE	 0x100000u  /* the part that does not depend on the CUs */
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
	uint32_t vf;
	uint64_t token;
	struct vgpu_pf_stream *request; /* NULL: the client is gone */
	uint32_t step;			/* enum stream_step */
	uint64_t vram_offset;		/* next byte of VRAM to be saved or restored */
	uint32_t first;			/* start of the buffer's bytes that are still to be moved */
	uint32_t filled;		/* end of these bytes */
	uint64_t bytes;			/* bytes moved through the stream so far */
	bool is_waiting_device;		/* true if a bulk operation of the stream has not ended */
	bool is_changed; /* true if RESTORE has changed the VF, and the VF was not reset since */
	bool has_left_pause; /* true if the VF has left its pause since the stream began */
	bool driver_loaded;  /* RESTORE: true if the saved VF had a loaded driver */
	struct vgpu_os_dma buffer;
};

/* provision.c: a PROVISION that waits until its VRAM and page tables are clean */
struct vgpu_pf_pending_provision {
	uint32_t vf; /* 0: none */
	uint64_t token;
	struct vgpu_pf_provision *payload;
};

/* scrub.c: a VERIFY_ZERO that waits for the device */
struct vgpu_pf_pending_verify {
	uint32_t vf;	 /* 0: none */
	uint32_t serial; /* distinguishes answers to this check from answers to earlier ones */
	uint64_t token;
	struct vgpu_range range; /* units being checked */
};

/* a request that returned -EINPROGRESS and has ended; the core must still report its end */
struct vgpu_finished_request {
	uint64_t token;
	int error;
	char message[VGPU_PF_MESSAGE_BYTES];
};

#define VGPU_PF_SCRATCH_BYTES 0x10000u
#define VGPU_PF_FINISHED      64u
#define VGPU_PF_TRACE	      64u

/* request.c, reply.c: the lease, and the answers to requests */
struct vgpu_pf_requests {
	uint64_t lease_holder;		     /* client number; 0: no client holds the lease */
	char message[VGPU_PF_MESSAGE_BYTES]; /* latest error text; a new request clears it */
	struct vgpu_finished_request finished[VGPU_PF_FINISHED];
	uint32_t finished_count;
};

/* event.c */
struct vgpu_pf_events {
	uint64_t seq; /* sequence number of the next event */
	bool has_new; /* true if clients have not been notified of the newest events */
};

/*
 * checkpoint.c: the checkpoint in PF VRAM has two records, one of all VFs and one of the run table;
 * each record has two copies
 */
struct vgpu_pf_checkpoint {
	bool is_dirty;	     /* true if the record of the VFs in VRAM is out of date */
	bool is_table_dirty; /* true if the record of the run table in VRAM is out of date */
	uint64_t seq;	     /* sequence number of the newest copy of the record of the VFs */
	uint64_t table_seq;  /* sequence number of the newest copy of the record of the run table */
	struct vgpu_pf_record vf_records[2];	/* the copies of the record of the VFs */
	struct vgpu_pf_record table_records[2]; /* the copies of the record of the run table */
};

/* device_reset.c: the reset of the whole device */
struct vgpu_pf_device_reset {
	uint64_t count; /* resets that this core has begun */
	bool is_due; /* true if the core must reset the device when it next does the pending work */
	bool is_under_way;
	uint64_t deadline_ns; /* when the core declares the device lost */
	bool is_lost; /* true if the device was lost in its reset, so the checkpoint is invalid */
};

/* timer.c: deadlines of the whole PF; 0: not set */
struct vgpu_pf_timers {
	uint64_t at_ns[VGPU_PF_TIMERS];
	uint64_t armed_ns; /* deadline to which the platform's timer is set; 0: disarmed */
};

/* one transition of a VF's life cycle */
struct vgpu_trace_line {
	uint64_t time_ns;
	uint8_t vf, from, event, to;
};

/* control.c: the last transitions of VFs, for the dump */
struct vgpu_pf_trace {
	struct vgpu_trace_line lines[VGPU_PF_TRACE];
	uint32_t total; /* transitions so far; lines[] keeps the last ones as a ring */
};

struct vgpu_pf {
	struct vgpu_os *os;
	struct vgpu_pf_params params;
	struct vgpu_pf_device device;
	bool was_attached; /* true after the first attach; then no other device may attach */
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
	/* temporary buffer for contents of VRAM; it belongs to one function at a time */
	uint8_t scratch[VGPU_PF_SCRATCH_BYTES] __attribute__((aligned(8)));
};

#endif
