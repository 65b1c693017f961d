/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uapi of the PF core: the interface of a GPU's PF driver for vgpud, tests and tools.
 *
 * Two homes offer it: /dev/vgpu-pfN (ioctl, mmap, poll) and the process vgpu-pf (a SOCK_SEQPACKET
 * unix socket; one request per message: struct vgpu_pf_request and the operation's struct; the
 * reply is struct vgpu_pf_reply and the same struct filled in; fds travel by SCM_RIGHTS). Both use
 * the same structs: padded, little endian, and versioned by their length, which is in the ioctl's
 * number or the message's head. A shorter struct of an older client is extended with zeroes; a
 * longer one is accepted only if the excess is 0 (else -E2BIG). In answers of GET operations `size`
 * is the number of bytes that the home knows; in requests it is ignored. Fields named reserved must
 * be 0 (else -EINVAL).
 *
 * VF numbers are 1..total_vfs. Sizes are bytes, times are ns of CLOCK_MONOTONIC unless named
 * otherwise. Errors are negative errno values in the reply.
 */
#ifndef VGPU_UAPI_PF_H
#define VGPU_UAPI_PF_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/types.h>
#else
#include <stdint.h>
#include <sys/ioctl.h>
#endif

#define VGPU_PF_UAPI_MAGIC    0x50475650u /* "PVGP" */
#define VGPU_PF_UAPI_VERSION  1u
#define VGPU_PF_MAX_VFS	      16u
#define VGPU_PF_NAME_BYTES    64u
#define VGPU_PF_MESSAGE_BYTES 160u

enum vgpu_pf_op {
	VGPU_PF_OP_GET_INFO = 1,      /* struct vgpu_pf_info */
	VGPU_PF_OP_GET_VF = 2,	      /* struct vgpu_pf_vf */
	VGPU_PF_OP_PROVISION = 3,     /* struct vgpu_pf_provision */
	VGPU_PF_OP_RELEASE = 4,	      /* struct vgpu_pf_vf_ref: starts the scrub */
	VGPU_PF_OP_SCRUB_DURABLE = 5, /* struct vgpu_pf_vf_ref: the scrub record is on disk */
	VGPU_PF_OP_CONTROL = 6,	      /* struct vgpu_pf_control */
	VGPU_PF_OP_SET_RUN_TABLE = 7, /* struct vgpu_pf_run_table */
	VGPU_PF_OP_GET_RUN_TABLE = 8, /* struct vgpu_pf_run_table */
	VGPU_PF_OP_GET_EVENT_RING =
		9,		 /* struct vgpu_pf_event_ring_info; fds: ring memory, eventfd */
	VGPU_PF_OP_SAVE = 10,	 /* struct vgpu_pf_stream; fd: written until its end */
	VGPU_PF_OP_RESTORE = 11, /* struct vgpu_pf_stream; fd: read until its end */
	VGPU_PF_OP_LEASE = 12,	 /* struct vgpu_pf_lease: only this client sets policy */
	/* struct vgpu_pf_vf_ref: -EUCLEAN: released VRAM is not 0; -ECANCELED: by SCRUB_DURABLE */
	VGPU_PF_OP_VERIFY_ZERO = 13,
	/* struct vgpu_pf_stream, vf and generation 0; fd: text for a bug report */
	VGPU_PF_OP_DUMP = 14,
	/* only in the kernel home */
	VGPU_PF_OP_GET_ERROR = 15, /* struct vgpu_pf_error: of this file's last failed request */
	VGPU_PF_OP_CANCEL = 16,	   /* struct vgpu_pf_cancel: ends use of this file; any thread */
};

/*
 * Kernel home: one ioctl for each operation. It returns when the request is finished, on failure -1
 * and errno; GET_ERROR returns the text. A signal ends the wait (EINTR) and withdraws the request.
 * After CANCEL the request in progress on that file, and all later ones, fail with ECANCELED.
 *
 * mmap() at offset 0, read-only, maps the event ring. poll() reports POLLIN when there are events
 * that this file has not read, and POLLHUP when the driver was unbound. A lost device, which may
 * come back, is reported by the event DEVICE_LOST and by device_lost. read() of 8 bytes returns the
 * number of events as a u64, as an eventfd does.
 */
#define VGPU_PF_IOC_TYPE      0xB7
#define VGPU_PF_IOC(op, type) _IOWR(VGPU_PF_IOC_TYPE, op, type)

struct vgpu_pf_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op;	 /* enum vgpu_pf_op */
	uint32_t size;	 /* of the struct that follows */
	uint64_t cookie; /* returned in the reply */
};

struct vgpu_pf_reply {
	uint32_t magic;
	int32_t error; /* 0 or negative errno */
	uint32_t op;
	uint32_t size; /* of the struct that follows */
	uint64_t cookie;
	char message[VGPU_PF_MESSAGE_BYTES]; /* error text; empty if none */
};

/* life cycle of a VF, docs/vf-lifecycle.md */
enum vgpu_pf_vf_state {
	VGPU_PF_VF_ABSENT = 0,	    /* no resources */
	VGPU_PF_VF_PROVISIONED = 1, /* has resources, guest not initialised */
	VGPU_PF_VF_READY = 2,	    /* may run, not in the engine now */
	VGPU_PF_VF_RUNNING = 3,	    /* in the engine */
	VGPU_PF_VF_PAUSED = 4,
	VGPU_PF_VF_STOPPED = 5,
	VGPU_PF_VF_RESETTING = 6,
	VGPU_PF_VF_QUARANTINED = 7,
	VGPU_PF_VF_SCRUBBING = 8,
	VGPU_PF_VF_MISMATCH = 9,
	VGPU_PF_VF_STATES = 10,
};

struct vgpu_pf_info {
	uint32_t size;
	uint32_t uapi_version;
	uint32_t total_vfs;
	uint32_t home;			  /* 0 process, 1 kernel */
	uint64_t vram_bytes;		  /* of the device */
	uint64_t vram_free_bytes;	  /* provisionable now */
	uint64_t vram_largest_free_bytes; /* for one VF (page tables scatter: equals free) */
	uint64_t vram_pf_bytes;		  /* reserved for the PF */
	uint64_t vram_unit_bytes;	  /* granularity of a VF's VRAM */
	uint64_t vram_aperture_bytes;	  /* BAR0 of a VF: upper limit of its VRAM */
	uint32_t doorbell_pages;	  /* per VF, upper limit */
	uint32_t cu_count;
	uint64_t device_time_ns;   /* clock of run log and events */
	uint64_t table_generation; /* of the run table in force */
	uint64_t boot_id;	   /* differs after each start of the PF core */
	uint32_t lease_held;	   /* 1: a client holds the policy lease */
	uint32_t device_lost;	   /* 1: the device does not answer */
	uint64_t switches;	   /* world switches since start */
	uint64_t switch_p50_ns, switch_p99_ns, switch_max_ns; /* end to end, park included */
	uint64_t whole_resets;
	char name[VGPU_PF_NAME_BYTES];
};

/* everything about one VF: the facts that adoption needs, and its counters */
struct vgpu_pf_vf {
	uint32_t size;
	uint32_t vf;	     /* in: VF number */
	uint32_t state;	     /* enum vgpu_pf_vf_state */
	uint32_t generation; /* of this provisioning */
	uint64_t vram_bytes;
	uint64_t vram_first_offset; /* device VRAM offset of its first page */
	uint64_t cu_mask;
	uint32_t doorbell_pages;
	uint32_t attached; /* a client has the function open */
	uint32_t in_full_access;
	uint32_t has_work;
	uint64_t service_ns; /* RUN time by the device's time stamps; idle rest does not count */
	uint64_t wave_instructions;
	uint64_t switches; /* times loaded */
	uint64_t overruns; /* quanta exceeded by more than 200 us */
	uint64_t overrun_max_ns;
	uint64_t flrs; /* resets, all causes */
	uint64_t guest_flrs, hangs;
	uint64_t full_access_count, full_access_timeouts;
	uint64_t mailbox_messages, mailbox_unknown;
	uint64_t doorbells_latched, faults, bad_packets, bad_accesses, illegal_instructions;
	uint64_t
		guard_events[4]; /* flr, exclusive, exclusive time-out, interrupts: in the window */
	uint32_t guard_level;	 /* 0 none, 1 event, 2 throttle, 3 pause, 4 FLR, 5 quarantine */
	uint32_t last_error;	 /* enum vgpu_pf_reason */
	uint8_t uuid[16];
	char driver_version[VGPU_PF_NAME_BYTES]; /* from VF2PF, sanitised */
	uint64_t guest_fb_usage_bytes;
	uint64_t reserved_service_ns; /* part of service_ns that its reservation paid for */
	uint64_t capped_ns;	      /* time with work, but without tokens */
};

struct vgpu_pf_provision {
	uint32_t size;
	uint32_t vf;			 /* in; 0: any ABSENT VF, its number is returned */
	uint64_t vram_bytes;		 /* in: multiple of vram_unit_bytes */
	uint64_t cu_mask;		 /* in; 0: all */
	uint32_t doorbell_pages;	 /* in; 0: all */
	uint32_t generation;		 /* out */
	uint32_t preempt_timeout_us;	 /* in; 0: default */
	uint32_t full_access_timeout_ms; /* in; 0: default */
	uint8_t uuid[16];		 /* in */
	uint32_t guard_limits[4];	 /* in; 0: default; UINT32_MAX: no limit */
	uint32_t flags;			 /* enum vgpu_pf_provision_flags */
	uint32_t reserved;
};

enum vgpu_pf_provision_flags {
	VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS = 1u << 0, /* stop the table as silicon must */
};

struct vgpu_pf_vf_ref {
	uint32_t size;
	uint32_t vf;
	uint32_t generation; /* must match; 0: any */
	uint32_t reserved;
};

enum vgpu_pf_control_action {
	VGPU_PF_PAUSE = 1,
	VGPU_PF_RESUME = 2,
	VGPU_PF_STOP = 3,  /* off the engine, gates shut, resources kept */
	VGPU_PF_RESET = 4, /* FLR: guest notified, device state scrubbed, back to PROVISIONED */
	VGPU_PF_CLEAR_QUARANTINE = 5,
};

struct vgpu_pf_control {
	uint32_t size;
	uint32_t vf;
	uint32_t generation;
	uint32_t action; /* enum vgpu_pf_control_action */
};

/*
 * Run table: the executor cycles through entries[0 .. count) and gives each VF its quantum,
 * skipping a VF without work. reserve[] lists VFs that may pre-empt a running quantum when they
 * wake, each with a budget per cycle. For a VF that also has entries this budget is an advance: it
 * is deducted from its next turns, and never exceeds the quantum of its first entry. generation
 * must be the generation in force + 1 (else -ESTALE).
 */
#define VGPU_PF_TABLE_ENTRIES 1024u

struct vgpu_pf_run_entry {
	uint32_t vf;
	uint32_t quantum_us; /* 100..1000000 */
};

/*
 * Contract of one VF in addition to its entries; the executor keeps it even if its client dies. All
 * zeroes: the VF has only its entries.
 *
 *   reservation  budget_ns of service in every period_ns in which the VF has that much work; served
 *                before any entry, earliest deadline first, pre-empting. A burst may use up to
 *                `ahead` further budgets in advance. Reserved service is not deducted from entries.
 *   cap          service in any time t <= rate_ppm * t / 10^6 + burst_ns + overrun of the last run;
 *                a VF without tokens is skipped until it has tokens for its first entry again
 *   band         entries of a band are served only while no VF of a lower-numbered band has work
 *   strict       the VF keeps its entries while it has no work: the engine idles
 *   gang         the reservation is a slot: budget_ns, starting phase_us after each multiple of
 *                period_ns of CLOCK_MONOTONIC; kept without work and never cut. Otherwise the VF
 *                runs only in full access, so VFs with the same period and phase on several GPUs
 *                run at the same time. Slots of one GPU must not overlap; no cap, ahead is 0
 *   preempt_timeout_us  time to leave the engine before the VF is reset
 */
#define VGPU_PF_BANDS		   3u
#define VGPU_PF_CONTRACT_MIN_NS	   100000ull	  /* shortest budget and burst */
#define VGPU_PF_CONTRACT_MAX_NS	   10000000000ull /* longest period and burst */
#define VGPU_PF_CONTRACT_MAX_AHEAD 16u
#define VGPU_PF_RATE_MAX_PPM	   1000000u

enum vgpu_pf_contract_flags {
	VGPU_PF_CONTRACT_STRICT = 1u << 0,
	VGPU_PF_CONTRACT_GANG = 1u << 1,
};

struct vgpu_pf_contract {
	uint64_t budget_ns; /* 0: no reservation */
	uint64_t period_ns;
	uint64_t burst_ns;
	uint32_t rate_ppm; /* of the time; 0: no cap */
	uint32_t ahead;
	uint32_t band;		     /* 0 is served first; below VGPU_PF_BANDS */
	uint32_t flags;		     /* enum vgpu_pf_contract_flags */
	uint32_t preempt_timeout_us; /* 0: as provisioned */
	uint32_t phase_us;	     /* of a gang's slots */
};

struct vgpu_pf_run_table {
	uint32_t size;
	uint32_t count;
	uint64_t generation;
	uint32_t reserve_count;
	uint32_t flags; /* enum vgpu_pf_table_flags */
	struct vgpu_pf_run_entry reserve[VGPU_PF_MAX_VFS];
	struct vgpu_pf_run_entry entries[VGPU_PF_TABLE_ENTRIES];
	struct vgpu_pf_contract contracts[VGPU_PF_MAX_VFS]; /* of VF index + 1 */
	/*
	 * Weight of VF index + 1, 1 to 10000; 0: the VF is served only in the table's turns. The PF
	 * core follows the order of the entries as long as no VF's lag exceeds the longest entry.
	 * If all weights are 0, each VF except those of a gang gets a weight in proportion to the
	 * time of its entries (6 ms if it has none), which GET_RUN_TABLE returns.
	 */
	uint32_t weights[VGPU_PF_MAX_VFS];
	/*
	 * Gap of VF index + 1, if it has a weight: when the PF core deviates from the entries, it
	 * keeps a VF with work off the engine no longer, unless the entries do; 0: no limit.
	 */
	uint32_t max_gap_us[VGPU_PF_MAX_VFS];
};

enum vgpu_pf_table_flags {
	VGPU_PF_TABLE_STRICT = 1u << 0, /* idle VFs keep their slots */
};

/*
 * Event ring: shared memory, one writer, any number of readers. A page with the head, then
 * `entries` (a power of two) events. Event seq is at index (seq - 1) % entries, and is valid if its
 * seq matches; a reader that falls behind sees a larger seq and knows how many events it lost.
 */
enum vgpu_pf_event_type {
	VGPU_PF_EVENT_NONE = 0,
	VGPU_PF_EVENT_RUN = 1,	   /* VF ran duration_ns until time_ns; arg: enum vgpu_hw_run_end */
	VGPU_PF_EVENT_STATE = 2,   /* arg: new enum vgpu_pf_vf_state; arg2: old */
	VGPU_PF_EVENT_WAKE = 3,	   /* inactive VFs have work, vf is the first; arg: bit per VF */
	VGPU_PF_EVENT_IDLE = 4,	   /* VF has no work that it may do; arg: enum vgpu_pf_idle */
	VGPU_PF_EVENT_OVERRUN = 5, /* duration_ns beyond its quantum */
	VGPU_PF_EVENT_HANG = 6,	   /* arg: enum vgpu_pf_reason; VF will be reset */
	VGPU_PF_EVENT_RESET_DONE = 7, /* arg: enum vgpu_pf_reason */
	/* zeroed in duration_ns, verified in arg2 ns; arg: generation; requires SCRUB_DURABLE */
	VGPU_PF_EVENT_SCRUBBED = 8,
	VGPU_PF_EVENT_GUARD = 9,	/* arg: index of the limit, 4 when relaxed; arg2: level */
	VGPU_PF_EVENT_FULL_ACCESS = 10, /* arg: 1 granted, 0 released, 2 timed out */
	VGPU_PF_EVENT_ATTACH = 11,	/* arg: 1 attached, 0 detached */
	VGPU_PF_EVENT_GUEST_ERROR = 12, /* arg, arg2: dwords of LOG_VF_ERROR */
	/* sysfs write during a lease; vf 0: all; arg: enum vgpu_pf_policy; arg2: value */
	VGPU_PF_EVENT_POLICY = 13,
	VGPU_PF_EVENT_TABLE = 14, /* arg: generation now in force */
	VGPU_PF_EVENT_DEVICE_LOST = 15,
	VGPU_PF_EVENT_DEVICE_BACK = 16,
	VGPU_PF_EVENT_WHOLE_RESET = 17,
	/* arg: number of HANG, RESET_DONE, GUEST_ERROR and log lines of the guest left out */
	VGPU_PF_EVENT_UNTOLD = 18,
};

/* policy that was written; the value has the unit of the sysfs file, docs/pf-driver.md */
enum vgpu_pf_policy {
	VGPU_PF_POLICY_EXEC_QUANTUM_MS = 1,
	VGPU_PF_POLICY_PREEMPT_TIMEOUT_US = 2,
	VGPU_PF_POLICY_SCHED_PRIORITY = 3, /* 0 low, 1 normal, 2 high */
	VGPU_PF_POLICY_VRAM_QUOTA = 4,	   /* bytes; 0: release */
	VGPU_PF_POLICY_WEIGHT = 5,
	VGPU_PF_POLICY_MIN_PCT = 6,
	VGPU_PF_POLICY_MAX_PCT = 7,
};

enum vgpu_pf_idle {
	VGPU_PF_IDLE_RUNNING = 0, /* from the end of its run on, which is reported later */
	VGPU_PF_IDLE_PARKED = 1,  /* already off the engine */
	VGPU_PF_IDLE_CAPPED = 2,  /* with work, but without tokens; WAKE comes when it has some */
};

struct vgpu_pf_event {
	uint64_t seq;
	uint64_t time_ns; /* device clock for RUN, else CLOCK_MONOTONIC */
	uint32_t type;	  /* enum vgpu_pf_event_type */
	uint32_t vf;
	uint64_t duration_ns;
	uint64_t arg;
	uint64_t arg2;
	uint64_t table_generation;
	uint64_t reserved_ns; /* RUN: part of duration_ns that its reservation paid for; else 0 */
};

struct vgpu_pf_event_ring_head {
	uint64_t next_seq; /* seq the next event will get; starts at 1 */
	uint32_t entries;
	uint32_t entry_bytes;
	uint64_t boot_id;
};

struct vgpu_pf_event_ring_info {
	uint32_t size;
	uint32_t entries;
	uint64_t bytes; /* of the mapping */
	uint64_t events_offset;
};

struct vgpu_pf_stream {
	uint32_t size;
	uint32_t vf;
	uint32_t generation;
	int32_t fd;	/* kernel home: the descriptor; the process gets it by SCM_RIGHTS */
	uint64_t bytes; /* out */
};

struct vgpu_pf_error {
	uint32_t size;
	int32_t error;			     /* negative errno; 0: no request failed */
	char message[VGPU_PF_MESSAGE_BYTES]; /* error text, NUL-terminated */
};

struct vgpu_pf_cancel {
	uint32_t size;
	uint32_t reserved;
};

struct vgpu_pf_lease {
	uint32_t size;
	uint32_t acquire; /* 1 acquire (-EBUSY if another client holds it), 0 give up */
};

/* why a VF was reset or stopped */
enum vgpu_pf_reason {
	VGPU_PF_REASON_NONE = 0,
	VGPU_PF_REASON_OPERATOR = 1,
	VGPU_PF_REASON_GUEST_REQUEST = 2, /* mailbox 5 or 201 */
	VGPU_PF_REASON_GUEST_FLR = 3,	  /* DEVICE_RESET or config space */
	VGPU_PF_REASON_DETACH = 4,
	VGPU_PF_REASON_IDLE_TIMEOUT = 5, /* did not idle within preempt_timeout */
	VGPU_PF_REASON_SAVE_TIMEOUT = 6,
	VGPU_PF_REASON_LOAD_TIMEOUT = 7,
	VGPU_PF_REASON_RUN_TIMEOUT = 8,
	VGPU_PF_REASON_BAD_STATUS = 9, /* a command ended with an error status */
	VGPU_PF_REASON_FULL_ACCESS_TIMEOUT = 10,
	VGPU_PF_REASON_GUARD = 11,
	VGPU_PF_REASON_DEVICE_LOST = 12,
	VGPU_PF_REASONS = 13,
};

#ifdef __cplusplus
#define VGPU_UAPI_ASSERT(claim) static_assert(claim, #claim)
#else
#define VGPU_UAPI_ASSERT(claim) _Static_assert(claim, #claim)
#endif
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_request) == 24);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_reply) == 184);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_event) == 64);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_run_entry) == 8);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_contract) == 48);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_run_table) % 8 == 0);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_info) % 8 == 0);
VGPU_UAPI_ASSERT(sizeof(struct vgpu_pf_vf) % 8 == 0);

#endif
