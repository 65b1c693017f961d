/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/**
 * DOC: uapi of the PF core
 *
 * This header is the interface of a GPU's PF driver for vgpud, tests and tools. Two platforms offer
 * it, with the same structs:
 *
 *   kernel    /dev/vgpu-pfN: one ioctl for each operation, mmap(), poll() and read()
 *   process   vgpu-pf: a SOCK_SEQPACKET unix socket with one request per message. A request is
 *             struct vgpu_pf_request, followed by the operation's struct. The reply is struct
 *             vgpu_pf_reply, followed by the same struct, filled in. SCM_RIGHTS carries fds.
 *
 * Structs have no implicit padding and are little endian. Their length, in the ioctl's number or in
 * the head of the message, is their version. The driver extends a shorter struct of an older client
 * with zeroes. It accepts a longer struct only if the excess is zero (else -E2BIG). The driver
 * ignores the member size of an operation's struct, and sets it in replies to GET operations.
 * Members named reserved must be 0 (else -EINVAL). VF numbers are 1..total_vfs (else -ENOENT; in a
 * run table -EINVAL). Sizes are in bytes. Times are in ns, and points in time on CLOCK_MONOTONIC,
 * unless name or description says otherwise. Errors are negative errno.
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
#define VGPU_PF_NAME_BYTES    64u  /* with the NUL */
#define VGPU_PF_MESSAGE_BYTES 160u /* with the NUL */

/**
 * enum vgpu_pf_op - operations
 * @VGPU_PF_OP_GET_INFO: struct vgpu_pf_info: get properties and counters of the GPU.
 * @VGPU_PF_OP_GET_VF: struct vgpu_pf_vf: get properties and counters of a VF.
 * @VGPU_PF_OP_PROVISION: struct vgpu_pf_provision: give resources to an ABSENT VF.
 * @VGPU_PF_OP_RELEASE: struct vgpu_pf_vf_ref: release a VF and scrub it, or repeat a failed scrub.
 * @VGPU_PF_OP_SCRUB_DURABLE: struct vgpu_pf_vf_ref: the client has recorded the scrub on disk; the
 *	VF becomes ABSENT and its resources become free. -EBUSY before event SCRUBBED.
 * @VGPU_PF_OP_CONTROL: struct vgpu_pf_control: do an action on a VF, such as a pause or a reset.
 * @VGPU_PF_OP_SET_RUN_TABLE: struct vgpu_pf_run_table: set the run table (see vgpu_pf_lease).
 * @VGPU_PF_OP_GET_RUN_TABLE: struct vgpu_pf_run_table: get the newest run table, in force or not.
 * @VGPU_PF_OP_GET_EVENT_RING: struct vgpu_pf_event_ring_info: get the layout of the event ring. The
 *	process also returns two fds: the memory of the ring and an eventfd.
 * @VGPU_PF_OP_SAVE: struct vgpu_pf_stream: write the state of a PAUSED VF to a file descriptor.
 * @VGPU_PF_OP_RESTORE: struct vgpu_pf_stream: fill a PAUSED VF from a file descriptor.
 * @VGPU_PF_OP_LEASE: struct vgpu_pf_lease: acquire or release the policy lease.
 * @VGPU_PF_OP_VERIFY_ZERO: struct vgpu_pf_vf_ref: check that the VRAM of a SCRUBBING VF is zero; an
 *	ABSENT VF passes (other states: -EINVAL). -EUCLEAN: a byte is not zero, or the device
 *	refused the check; -ECANCELED: SCRUB_DURABLE freed the VRAM; -EBUSY: the VF or the device is
 *	busy, so try again; -EIO, -ENODEV, -ETIMEDOUT: the device was reset, lost or slow.
 * @VGPU_PF_OP_DUMP: struct vgpu_pf_stream, vf and generation 0: write a text for a bug report.
 * @VGPU_PF_OP_GET_ERROR: struct vgpu_pf_error: get the last error text of this file. Kernel only.
 * @VGPU_PF_OP_CANCEL: struct vgpu_pf_cancel: make all requests of this open file fail. Kernel only.
 *
 * GET_INFO, GET_VF, GET_RUN_TABLE, GET_EVENT_RING, GET_ERROR and CANCEL are open to clients that
 * may only read; the other operations require write access (else -EPERM). While the device is lost,
 * all operations except these six, LEASE and DUMP fail with -ENODEV. Only one stream (SAVE, RESTORE
 * or DUMP), and only four requests of each client, may be in progress at a time (else -EBUSY).
 */
enum vgpu_pf_op {
	VGPU_PF_OP_GET_INFO = 1,
	VGPU_PF_OP_GET_VF = 2,
	VGPU_PF_OP_PROVISION = 3,
	VGPU_PF_OP_RELEASE = 4,
	VGPU_PF_OP_SCRUB_DURABLE = 5,
	VGPU_PF_OP_CONTROL = 6,
	VGPU_PF_OP_SET_RUN_TABLE = 7,
	VGPU_PF_OP_GET_RUN_TABLE = 8,
	VGPU_PF_OP_GET_EVENT_RING = 9,
	VGPU_PF_OP_SAVE = 10,
	VGPU_PF_OP_RESTORE = 11,
	VGPU_PF_OP_LEASE = 12,
	VGPU_PF_OP_VERIFY_ZERO = 13,
	VGPU_PF_OP_DUMP = 14,
	VGPU_PF_OP_GET_ERROR = 15,
	VGPU_PF_OP_CANCEL = 16,
};

/**
 * DOC: The file /dev/vgpu-pfN
 *
 * ioctl() returns when the request is finished. It returns 0, or -1 and errno. If the operation
 * itself failed, the struct is copied back nevertheless. A signal ends the wait (EINTR) and the
 * request's stream; any other action that the request started continues. After CANCEL, requests of
 * that file in progress and later ones fail with ECANCELED, except GET_ERROR, GET_EVENT_RING and
 * CANCEL. mmap() at offset 0, read-only, maps the event ring. read() of 8 bytes waits for new
 * events and returns their number as a u64, as an eventfd does.
 *
 * poll() reports POLLIN if there are new events since the file's last read(), and POLLHUP if the
 * driver was unbound from the device. poll() does not report the loss of a device, which may come
 * back: see the event DEVICE_LOST and vgpu_pf_info.device_lost.
 */
#define VGPU_PF_IOC_TYPE 0xB7
/**
 * VGPU_PF_IOC() - number of an operation's ioctl
 * @op: enum vgpu_pf_op
 * @type: the operation's struct; its length is part of the number
 */
#define VGPU_PF_IOC(op, type) _IOWR(VGPU_PF_IOC_TYPE, op, type)

/**
 * struct vgpu_pf_request - head of a request message
 * @magic: VGPU_PF_UAPI_MAGIC
 * @version: VGPU_PF_UAPI_VERSION
 * @op: enum vgpu_pf_op
 * @size: bytes of the struct that follows
 * @cookie: any number; the reply returns it
 */
struct vgpu_pf_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op;
	uint32_t size;
	uint64_t cookie;
};

/**
 * struct vgpu_pf_reply - head of a reply message
 * @magic: VGPU_PF_UAPI_MAGIC
 * @error: 0 or negative errno
 * @op: operation of the request
 * @size: bytes of the struct that follows; 0 if the process refused the request
 * @cookie: cookie of the request
 * @message: text of the error, NUL-terminated; empty if error is 0
 */
struct vgpu_pf_reply {
	uint32_t magic;
	int32_t error;
	uint32_t op;
	uint32_t size;
	uint64_t cookie;
	char message[VGPU_PF_MESSAGE_BYTES];
};

/**
 * enum vgpu_pf_vf_state - states of a VF's life cycle (docs/vf-lifecycle.md)
 * @VGPU_PF_VF_ABSENT: has no resources
 * @VGPU_PF_VF_PROVISIONED: has resources; the guest has no driver loaded
 * @VGPU_PF_VF_READY: may run, and is not in the engine now
 * @VGPU_PF_VF_RUNNING: is in the engine
 * @VGPU_PF_VF_PAUSED: kept off the engine; keeps its state
 * @VGPU_PF_VF_STOPPED: off the engine, gates shut: STOP, failed RESTORE, lost or reset device
 * @VGPU_PF_VF_RESETTING: a reset is in progress
 * @VGPU_PF_VF_QUARANTINED: off the engine, gates shut: its guest exceeded a limit of the guard
 * @VGPU_PF_VF_SCRUBBING: released; waits for the scrub, then for SCRUB_DURABLE
 * @VGPU_PF_VF_MISMATCH: an event was impossible in the VF's state, because the PF core has a bug
 * @VGPU_PF_VF_STATES: number of states
 */
enum vgpu_pf_vf_state {
	VGPU_PF_VF_ABSENT = 0,
	VGPU_PF_VF_PROVISIONED = 1,
	VGPU_PF_VF_READY = 2,
	VGPU_PF_VF_RUNNING = 3,
	VGPU_PF_VF_PAUSED = 4,
	VGPU_PF_VF_STOPPED = 5,
	VGPU_PF_VF_RESETTING = 6,
	VGPU_PF_VF_QUARANTINED = 7,
	VGPU_PF_VF_SCRUBBING = 8,
	VGPU_PF_VF_MISMATCH = 9,
	VGPU_PF_VF_STATES = 10,
};

/**
 * struct vgpu_pf_info - properties and counters of the GPU
 * @size: bytes of the struct
 * @uapi_version: VGPU_PF_UAPI_VERSION of the driver
 * @total_vfs: number of VFs
 * @platform: 0 process, 1 kernel
 * @vram_bytes: VRAM of the device
 * @vram_free_bytes: VRAM that can be provisioned now
 * @vram_largest_free_bytes: VRAM that one VF can get now, at most vram_aperture_bytes. Page tables
 *	map scattered VRAM, so fragmentation does not matter.
 * @vram_pf_bytes: VRAM that is reserved for the PF
 * @vram_unit_bytes: granularity of a VF's VRAM
 * @vram_aperture_bytes: size of a VF's BAR0, the upper limit of its VRAM
 * @doorbell_pages: upper limit of the doorbell pages of one VF
 * @cu_count: compute units of the device
 * @device_time_ns: time by the device's clock, which stamps RUN events; 0 if the device is lost
 * @table_generation: generation of the run table in force
 * @boot_id: a number that differs after each start of the PF core
 * @lease_held: 1 if a client holds the policy lease
 * @device_lost: 1 if no device is attached, because the device is lost or suspended
 * @switches: world switches since the core started
 * @switch_p50_ns: median duration of a world switch, from the decision until the core has seen the
 *	end of the switch; rounded up by at most 25 %
 * @switch_p99_ns: 99th percentile of the duration of a world switch, rounded in the same way
 * @switch_max_ns: longest world switch, not rounded
 * @device_resets: resets of the whole device that the core has begun since its start
 * @name: name of the GPU, NUL-terminated
 */
struct vgpu_pf_info {
	uint32_t size;
	uint32_t uapi_version;
	uint32_t total_vfs;
	uint32_t platform;
	uint64_t vram_bytes;
	uint64_t vram_free_bytes;
	uint64_t vram_largest_free_bytes;
	uint64_t vram_pf_bytes;
	uint64_t vram_unit_bytes;
	uint64_t vram_aperture_bytes;
	uint32_t doorbell_pages;
	uint32_t cu_count;
	uint64_t device_time_ns;
	uint64_t table_generation;
	uint64_t boot_id;
	uint32_t lease_held;
	uint32_t device_lost;
	uint64_t switches;
	uint64_t switch_p50_ns, switch_p99_ns, switch_max_ns;
	uint64_t device_resets;
	char name[VGPU_PF_NAME_BYTES];
};

/**
 * struct vgpu_pf_vf - properties and counters of one VF
 * @size: bytes of the struct
 * @vf: in: VF number
 * @state: enum vgpu_pf_vf_state
 * @generation: counts the provisionings of the VF
 * @vram_bytes: provisioned VRAM
 * @vram_first_offset: offset of the VF's first byte in the VRAM of the device; 0: no VRAM
 * @cu_mask: compute units that the VF may use, bit n for CU n
 * @doorbell_pages: provisioned doorbell pages
 * @attached: 1 if a client such as QEMU has the VF's function open
 * @in_full_access: 1 if the guest's driver has full access
 * @has_work: 1 if the VF has work now
 * @service_ns: time in the engine (device's clock), without idle time while no other VF had work
 * @wave_instructions: instructions that the VF's waves have executed
 * @switches: times the VF was put into the engine
 * @overruns: runs that exceeded their allowed time by more than 200 us
 * @overrun_max_ns: longest overrun
 * @flrs: resets of the VF (state RESETTING), for any reason
 * @guest_flrs: resets for the reasons GUEST_REQUEST and GUEST_FLR
 * @hangs: resets because a world switch to or from the VF failed
 * @full_access_count: how often the guest's driver got full access
 * @full_access_timeouts: how often the guest's driver did not release full access in time
 * @mailbox_messages: messages received from the guest
 * @mailbox_unknown: messages received from the guest with an unknown number
 * @doorbells_latched: doorbells that the guest rang while the VF was off the engine
 * @faults: memory faults that the device reported to the guest
 * @bad_packets: packets that the device refused
 * @bad_accesses: accesses to registers and BARs that the device refused
 * @illegal_instructions: illegal shader instructions, also those that a trap handler handled
 * @guard_events: events in each current window of the guard: resets that the guest caused, requests
 *	for full access to load or unload the driver, time-outs of full access, mailbox messages
 * @guard_level: reaction in force: 0 none, 1 event, 2 throttle, 3 pause, 4 FLR, 5 quarantine
 * @last_error: enum vgpu_pf_reason of the last reset, stop, quarantine, device loss, failed scrub
 * @uuid: uuid of the PROVISION request
 * @driver_version: version of the guest's driver, untrusted; '?' replaces unprintable characters
 * @guest_fb_usage_bytes: VRAM in use as the guest's driver reports it, untrusted
 * @reserved_service_ns: part of service_ns that was served from the reservation or in gang slots
 * @throttled_ns: time in which the VF had work and was throttled by its cap
 *
 * The members that the core reads from the device are 0 while the device is lost: has_work;
 * driver_version and guest_fb_usage_bytes (also without a loaded driver); doorbells_latched to
 * illegal_instructions, which count modulo 2^32 and which a new provisioning does not reset.
 * service_ns to mailbox_unknown, reserved_service_ns and throttled_ns start at 0 when the VF is
 * provisioned and when the core starts.
 */
struct vgpu_pf_vf {
	uint32_t size;
	uint32_t vf;
	uint32_t state;
	uint32_t generation;
	uint64_t vram_bytes;
	uint64_t vram_first_offset;
	uint64_t cu_mask;
	uint32_t doorbell_pages;
	uint32_t attached;
	uint32_t in_full_access;
	uint32_t has_work;
	uint64_t service_ns;
	uint64_t wave_instructions;
	uint64_t switches;
	uint64_t overruns;
	uint64_t overrun_max_ns;
	uint64_t flrs;
	uint64_t guest_flrs, hangs;
	uint64_t full_access_count, full_access_timeouts;
	uint64_t mailbox_messages, mailbox_unknown;
	uint64_t doorbells_latched, faults, bad_packets, bad_accesses, illegal_instructions;
	uint64_t guard_events[4];
	uint32_t guard_level;
	uint32_t last_error;
	uint8_t uuid[16];
	char driver_version[VGPU_PF_NAME_BYTES];
	uint64_t guest_fb_usage_bytes;
	uint64_t reserved_service_ns;
	uint64_t throttled_ns;
};

/**
 * struct vgpu_pf_provision - resources for a VF
 * @size: bytes of the struct
 * @vf: in: VF number; 0: any ABSENT VF. out: VF number
 * @vram_bytes: in: a multiple of vram_unit_bytes, at most vram_aperture_bytes
 * @cu_mask: in: bit n for CU n; 0: all
 * @doorbell_pages: in: number of doorbell pages; 0: all
 * @generation: out: the VF's new generation
 * @preempt_timeout_us: in: time to leave the engine, else a reset; at most 100 s; 0: 100 ms
 * @full_access_timeout_ms: in: time limit of full access, at most 500000; 0: 3000
 * @uuid: in: any value; GET_VF returns it
 * @guard_limits: in: limits of vgpu_pf_vf.guard_events, 1..64; 0: default; UINT32_MAX: no limit
 * @flags: in: enum vgpu_pf_provision_flags
 * @reserved: 0
 *
 * Errors: -EBUSY if the VF is not ABSENT or a VF is being provisioned, -ENOSPC if no VF or not
 * enough VRAM is free, -EINVAL for a value out of range, or an error of the device. The device
 * first scrubs VRAM that could hold old data. After an error, the VF's resources are unchanged.
 */
struct vgpu_pf_provision {
	uint32_t size;
	uint32_t vf;
	uint64_t vram_bytes;
	uint64_t cu_mask;
	uint32_t doorbell_pages;
	uint32_t generation;
	uint32_t preempt_timeout_us;
	uint32_t full_access_timeout_ms;
	uint8_t uuid[16];
	uint32_t guard_limits[4];
	uint32_t flags;
	uint32_t reserved;
};

/**
 * enum vgpu_pf_provision_flags - flags of PROVISION
 * @VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS: no other VF runs or gets full access while this VF has
 *	full access and is not paused; required on devices without a register bank for each VF
 */
enum vgpu_pf_provision_flags {
	VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS = 1u << 0,
};

/**
 * struct vgpu_pf_vf_ref - names a VF
 * @size: bytes of the struct
 * @vf: VF number
 * @generation: must be the VF's present generation (else -ESTALE); 0: any
 * @reserved: 0
 */
struct vgpu_pf_vf_ref {
	uint32_t size;
	uint32_t vf;
	uint32_t generation;
	uint32_t reserved;
};

/**
 * enum vgpu_pf_control_action - actions of CONTROL
 * @VGPU_PF_PAUSE: take the VF off the engine and keep its state
 * @VGPU_PF_RESUME: end a pause
 * @VGPU_PF_STOP: take the VF off the engine and shut its gates; the VF keeps its resources
 * @VGPU_PF_RESET: reset the VF: the core notifies a loaded driver of the guest, the device clears
 *	the VF's state by a function level reset, and the VF returns to PROVISIONED
 * @VGPU_PF_CLEAR_QUARANTINE: end a quarantine by a reset, and empty the windows of the guard
 */
enum vgpu_pf_control_action {
	VGPU_PF_PAUSE = 1,
	VGPU_PF_RESUME = 2,
	VGPU_PF_STOP = 3,
	VGPU_PF_RESET = 4,
	VGPU_PF_CLEAR_QUARANTINE = 5,
};

/**
 * struct vgpu_pf_control - an action on one VF
 * @size: bytes of the struct
 * @vf: VF number
 * @generation: must be the VF's present generation (else -ESTALE); 0: any
 * @action: enum vgpu_pf_control_action
 *
 * Errors: -EINVAL if the VF's state does not allow the action, -EBUSY during another action on the
 * VF, or for RESUME during a RESTORE. The request finishes when the VF is off the engine; a reset
 * then continues in the state RESETTING.
 */
struct vgpu_pf_control {
	uint32_t size;
	uint32_t vf;
	uint32_t generation;
	uint32_t action;
};

#define VGPU_PF_TABLE_ENTRIES 1024u /* most entries of a run table */

/**
 * struct vgpu_pf_run_entry - one time slice of a VF
 * @vf: VF number
 * @quantum_us: length of the slice, 100..1000000
 */
struct vgpu_pf_run_entry {
	uint32_t vf;
	uint32_t quantum_us;
};

#define VGPU_PF_PRIORITY_CLASSES   3u		  /* number of classes */
#define VGPU_PF_CONTRACT_MIN_NS	   100000ull	  /* shortest budget and burst */
#define VGPU_PF_CONTRACT_MAX_NS	   10000000000ull /* longest period and burst */
#define VGPU_PF_CONTRACT_MAX_AHEAD 16u
#define VGPU_PF_RATE_MAX_PPM	   1000000u

/**
 * enum vgpu_pf_contract_flags - flags of a contract
 * @VGPU_PF_CONTRACT_STRICT: the VF keeps its entries while it has no work, and the engine idles
 *	during them (non-work-conserving), unless only VFs of other priority classes have work
 * @VGPU_PF_CONTRACT_GANG: the reservation is a slot that begins phase_us after each multiple of
 *	period_ns of CLOCK_MONOTONIC and lasts budget_ns. The VF keeps the slot while it has no
 *	work, and only a VF in exclusive full access preempts the slot. Outside its slots the VF
 *	runs only in full access. So VFs with the same period and phase on several GPUs run
 *	together. Slots of one GPU must not overlap. The VF must have no cap, and ahead must be 0.
 */
enum vgpu_pf_contract_flags {
	VGPU_PF_CONTRACT_STRICT = 1u << 0,
	VGPU_PF_CONTRACT_GANG = 1u << 1,
};

/**
 * struct vgpu_pf_contract - terms of one VF in addition to its entries
 * @budget_ns: reserved service in every period_ns in which the VF has that much work;
 *	VGPU_PF_CONTRACT_MIN_NS to period_ns; 0: no reservation
 * @period_ns: at most VGPU_PF_CONTRACT_MAX_NS; 0 without a reservation
 * @burst_ns: capacity of the cap's token bucket; budget_ns + VGPU_PF_CONTRACT_MIN_NS to
 *	VGPU_PF_CONTRACT_MAX_NS; 0 without a cap
 * @rate_ppm: cap, in millionths of the time, up to VGPU_PF_RATE_MAX_PPM; 0: no cap
 * @ahead: number of budgets of later periods that the VF may use in advance; at most
 *	VGPU_PF_CONTRACT_MAX_AHEAD
 * @priority_class: 0 (highest) to VGPU_PF_PRIORITY_CLASSES - 1. Entries of VFs of a class are
 *	served only while no VF of a lower-numbered class has work.
 * @flags: enum vgpu_pf_contract_flags
 * @preempt_timeout_us: time to leave the engine, at most 100 s; 0: the provisioned time
 * @phase_us: GANG: start of the slot in each period, less than period_ns; otherwise 0
 *
 * The scheduler keeps the contracts even if the client that set them dies. If all members are 0,
 * the VF has only its entries. Reservations are served before any entry, the earliest deadline
 * first, and preempt a slice of the table. Reserved service is not deducted from the VF's entries.
 *
 * A cap bounds the VF's time in the engine, with or without work, in any span t without exclusive
 * full access: time in the engine <= rate_ppm * t / 10^6 + burst_ns + overrun of the last run. The
 * scheduler skips the entries of a VF with too few tokens until the VF has tokens for a slice.
 */
struct vgpu_pf_contract {
	uint64_t budget_ns;
	uint64_t period_ns;
	uint64_t burst_ns;
	uint32_t rate_ppm;
	uint32_t ahead;
	uint32_t priority_class;
	uint32_t flags;
	uint32_t preempt_timeout_us;
	uint32_t phase_us;
};

/**
 * struct vgpu_pf_run_table - the order in which VFs use the engine
 * @size: bytes of the struct
 * @count: number of entries, at least 1
 * @generation: must be the newest generation + 1 (else -ESTALE)
 * @reserve_count: number of entries in reserve
 * @flags: enum vgpu_pf_table_flags
 * @reserve: VFs that, when they wake, may preempt other VFs, for quantum_us (the reserve budget)
 *	per cycle of the table. If such a VF also has entries, this time is deducted from its next
 *	slices, and a single preemption lasts at most for the quantum of its first entry.
 * @entries: the scheduler cycles through entries[0 .. count) and gives each VF its quantum. It
 *	skips a VF without work, unless the VF or the table is STRICT.
 * @contracts: contract of VF n in contracts[n - 1]
 * @weights: weight of VF n in weights[n - 1], 1 to 10000; 0: no share by weight, only entries. The
 *	PF core deviates from the entries where a slice could make a lag exceed the longest entry.
 *	If all weights are 0, each VF not in a gang gets a weight in proportion to the time of its
 *	entries (6 ms if it has none). GET_RUN_TABLE returns these weights.
 * @max_gap_us: longest gap of VF n in max_gap_us[n - 1], at least 1000; 0: only max_gap_ms of the
 *	platform applies. Before a slice that would make a VF of the same class wait longer, the VF
 *	with the least time left runs. A gap does not cut a slice that has begun.
 */
struct vgpu_pf_run_table {
	uint32_t size;
	uint32_t count;
	uint64_t generation;
	uint32_t reserve_count;
	uint32_t flags;
	struct vgpu_pf_run_entry reserve[VGPU_PF_MAX_VFS];
	struct vgpu_pf_run_entry entries[VGPU_PF_TABLE_ENTRIES];
	struct vgpu_pf_contract contracts[VGPU_PF_MAX_VFS];
	uint32_t weights[VGPU_PF_MAX_VFS];
	uint32_t max_gap_us[VGPU_PF_MAX_VFS];
};

/**
 * enum vgpu_pf_table_flags - flags of a run table
 * @VGPU_PF_TABLE_STRICT: all VFs keep their entries as with VGPU_PF_CONTRACT_STRICT
 */
enum vgpu_pf_table_flags {
	VGPU_PF_TABLE_STRICT = 1u << 0,
};

/**
 * enum vgpu_pf_event_type - events
 * @VGPU_PF_EVENT_NONE: not used
 * @VGPU_PF_EVENT_RUN: a run (period in the engine) of a VF ended at time_ns; duration_ns: service;
 *	arg: ended by: 0 a command, 1 the end of the quantum, 2 a command while the VF had no work,
 *	3 a reset; arg2: ns from the request to stop until the VF had stopped
 * @VGPU_PF_EVENT_STATE: the state of a VF changed (but not READY to RUNNING or back); arg: new
 *	state; arg2: old state. If both are SCRUBBING, the scrub has failed; see last_error.
 * @VGPU_PF_EVENT_WAKE: VFs got work or tokens; vf: the first of them; arg: bit n - 1 for VF n
 * @VGPU_PF_EVENT_IDLE: a VF has no work, or is throttled; arg: enum vgpu_pf_idle
 * @VGPU_PF_EVENT_OVERRUN: a run exceeded its allowed time by duration_ns, more than 200 us
 * @VGPU_PF_EVENT_HANG: a VF failed to enter or leave the engine and is reset; arg: enum
 *	vgpu_pf_reason
 * @VGPU_PF_EVENT_RESET_DONE: a reset of a VF ended after duration_ns; arg: enum vgpu_pf_reason
 * @VGPU_PF_EVENT_SCRUBBED: the VRAM of a VF was zeroed in duration_ns and verified in arg2 ns; arg:
 *	generation of the VF. The VF waits for SCRUB_DURABLE.
 * @VGPU_PF_EVENT_GUARD: the guard level of a VF changed; arg: index of the limit that the guest
 *	exceeded, or 4 when the level returned to none; arg2: new level
 * @VGPU_PF_EVENT_FULL_ACCESS: full access of a VF; arg: 1 granted, 0 ended, 2 timed out (0 follows)
 * @VGPU_PF_EVENT_ATTACH: a client such as QEMU opened (arg 1) or closed (arg 0) a VF's function
 * @VGPU_PF_EVENT_GUEST_ERROR: message LOG_VF_ERROR or RAS_POISON of a guest; arg: dwords 1 (low)
 *	and 2 (high) of the message; arg2: dwords 3 (low) and 0 (high)
 * @VGPU_PF_EVENT_POLICY: sysfs file exec_quantum_ms or weight was written while a client held the
 *	lease; vf 0: all VFs; arg: enum vgpu_pf_policy; arg2: value
 * @VGPU_PF_EVENT_TABLE: a run table came into force; arg: generation of the table
 * @VGPU_PF_EVENT_DEVICE_LOST: the device does not answer, is stuck in its reset, or is suspended
 * @VGPU_PF_EVENT_DEVICE_BACK: the device is back; arg: 1 if it has kept its state, else 0
 * @VGPU_PF_EVENT_DEVICE_RESET: a reset of the whole device begins; arg: number of resets so far
 * @VGPU_PF_EVENT_UNREPORTED: the rate limit left out events (HANG, RESET_DONE, GUEST_ERROR) or log
 *	lines that a guest caused; arg: number of them
 */
enum vgpu_pf_event_type {
	VGPU_PF_EVENT_NONE = 0,
	VGPU_PF_EVENT_RUN = 1,
	VGPU_PF_EVENT_STATE = 2,
	VGPU_PF_EVENT_WAKE = 3,
	VGPU_PF_EVENT_IDLE = 4,
	VGPU_PF_EVENT_OVERRUN = 5,
	VGPU_PF_EVENT_HANG = 6,
	VGPU_PF_EVENT_RESET_DONE = 7,
	VGPU_PF_EVENT_SCRUBBED = 8,
	VGPU_PF_EVENT_GUARD = 9,
	VGPU_PF_EVENT_FULL_ACCESS = 10,
	VGPU_PF_EVENT_ATTACH = 11,
	VGPU_PF_EVENT_GUEST_ERROR = 12,
	VGPU_PF_EVENT_POLICY = 13,
	VGPU_PF_EVENT_TABLE = 14,
	VGPU_PF_EVENT_DEVICE_LOST = 15,
	VGPU_PF_EVENT_DEVICE_BACK = 16,
	VGPU_PF_EVENT_DEVICE_RESET = 17,
	VGPU_PF_EVENT_UNREPORTED = 18,
};

/**
 * enum vgpu_pf_policy - policies in sysfs; docs/pf-driver.md has the units
 * @VGPU_PF_POLICY_EXEC_QUANTUM_MS: quantum in ms
 * @VGPU_PF_POLICY_PREEMPT_TIMEOUT_US: time to leave the engine in us
 * @VGPU_PF_POLICY_SCHED_PRIORITY: 0 low, 1 normal, 2 high
 * @VGPU_PF_POLICY_VRAM_QUOTA: VRAM in bytes; 0: release the VF
 * @VGPU_PF_POLICY_WEIGHT: weight in hundredths
 * @VGPU_PF_POLICY_MIN_PCT: smallest share of the engine while all VFs have work, in percent
 * @VGPU_PF_POLICY_MAX_PCT: largest share of the engine (cap), in percent
 */
enum vgpu_pf_policy {
	VGPU_PF_POLICY_EXEC_QUANTUM_MS = 1,
	VGPU_PF_POLICY_PREEMPT_TIMEOUT_US = 2,
	VGPU_PF_POLICY_SCHED_PRIORITY = 3,
	VGPU_PF_POLICY_VRAM_QUOTA = 4,
	VGPU_PF_POLICY_WEIGHT = 5,
	VGPU_PF_POLICY_MIN_PCT = 6,
	VGPU_PF_POLICY_MAX_PCT = 7,
};

/**
 * enum vgpu_pf_idle - where a VF was when it became idle
 * @VGPU_PF_IDLE_RUNNING: in the engine; the VF counts as idle from the end of its present run,
 *	which a later RUN event reports
 * @VGPU_PF_IDLE_INACTIVE: off the engine
 * @VGPU_PF_IDLE_THROTTLED: off the engine with work, but throttled; WAKE follows when it has tokens
 */
enum vgpu_pf_idle {
	VGPU_PF_IDLE_RUNNING = 0,
	VGPU_PF_IDLE_INACTIVE = 1,
	VGPU_PF_IDLE_THROTTLED = 2,
};

/**
 * struct vgpu_pf_event - one entry of the event ring
 * @seq: sequence number, from 1; 0 while the entry is being written
 * @time_ns: RUN: end of the run by the device's clock; other types: CLOCK_MONOTONIC
 * @type: enum vgpu_pf_event_type
 * @vf: VF number; 0: the GPU
 * @duration_ns: as the type says, else 0
 * @arg: as the type says, else 0
 * @arg2: as the type says, else 0
 * @table_generation: generation of the run table in force
 * @reserved_ns: RUN: part of duration_ns from the reservation or a gang slot; other types: 0
 */
struct vgpu_pf_event {
	uint64_t seq;
	uint64_t time_ns;
	uint32_t type;
	uint32_t vf;
	uint64_t duration_ns;
	uint64_t arg;
	uint64_t arg2;
	uint64_t table_generation;
	uint64_t reserved_ns;
};

/**
 * struct vgpu_pf_event_ring_head - first page of the event ring
 * @next_seq: sequence number that the next event will get; starts at 1
 * @entries: number of entries, a power of two
 * @entry_bytes: sizeof(struct vgpu_pf_event)
 * @boot_id: as vgpu_pf_info.boot_id
 *
 * The ring is shared memory with one writer, the PF core, and any number of readers. The entries
 * follow at events_offset. Event n is at index (n - 1) % entries. A reader's copy is valid if the
 * entry's seq is n before and after the copy. If seq is larger, the reader has missed events.
 */
struct vgpu_pf_event_ring_head {
	uint64_t next_seq;
	uint32_t entries;
	uint32_t entry_bytes;
	uint64_t boot_id;
};

/**
 * struct vgpu_pf_event_ring_info - layout of the event ring
 * @size: bytes of the struct
 * @entries: number of entries
 * @bytes: length of the mapping
 * @events_offset: offset of the first entry in the mapping
 */
struct vgpu_pf_event_ring_info {
	uint32_t size;
	uint32_t entries;
	uint64_t bytes;
	uint64_t events_offset;
};

/**
 * struct vgpu_pf_stream - payload of SAVE, RESTORE and DUMP
 * @size: bytes of the struct
 * @vf: VF number; 0 for DUMP
 * @generation: must be the VF's present generation (else -ESTALE); 0: any
 * @fd: kernel: the file descriptor; process: not used, SCM_RIGHTS carries the file descriptor
 * @bytes: out: bytes moved, also after an error
 *
 * SAVE and DUMP write to the file descriptor, and RESTORE reads from it, until the stream ends.
 * Errors: -EINVAL: the VF is not PAUSED; -ECANCELED: it was resumed or reset; -EBADMSG: the input
 * is damaged or does not fit the VF; or another errno. A failed RESTORE stops a VF that it changed.
 */
struct vgpu_pf_stream {
	uint32_t size;
	uint32_t vf;
	uint32_t generation;
	int32_t fd;
	uint64_t bytes;
};

/**
 * struct vgpu_pf_error - the last failed request of a file
 * @size: bytes of the struct
 * @error: negative errno; 0: no request failed
 * @message: text of the error, NUL-terminated
 */
struct vgpu_pf_error {
	uint32_t size;
	int32_t error;
	char message[VGPU_PF_MESSAGE_BYTES];
};

/**
 * struct vgpu_pf_cancel - payload of CANCEL
 * @size: bytes of the struct
 * @reserved: 0
 */
struct vgpu_pf_cancel {
	uint32_t size;
	uint32_t reserved;
};

/**
 * struct vgpu_pf_lease - the policy lease
 * @size: bytes of the struct
 * @acquire: 1: acquire the lease; 0: release it
 *
 * While a client holds the lease, only that client may set the run table or use LEASE (else
 * -EBUSY). The lease also ends when the client closes its file or socket.
 */
struct vgpu_pf_lease {
	uint32_t size;
	uint32_t acquire;
};

/**
 * enum vgpu_pf_reason - why a VF was reset or stopped, or its scrub failed
 * @VGPU_PF_REASON_NONE: no reason
 * @VGPU_PF_REASON_OPERATOR: a CONTROL request
 * @VGPU_PF_REASON_GUEST_REQUEST: the guest sent REQ_GPU_RESET_ACCESS or READY_TO_RESET
 * @VGPU_PF_REASON_GUEST_FLR: the guest or its VMM reset the function (VFIO reset, config space)
 * @VGPU_PF_REASON_DETACH: the client (such as QEMU) closed the function
 * @VGPU_PF_REASON_IDLE_TIMEOUT: the VF did not leave the engine in time
 * @VGPU_PF_REASON_SAVE_TIMEOUT: the device did not save the VF's state in time
 * @VGPU_PF_REASON_LOAD_TIMEOUT: the device did not load the VF's state in time
 * @VGPU_PF_REASON_RUN_TIMEOUT: the device did not start the VF in time
 * @VGPU_PF_REASON_BAD_STATUS: the device refused or did not get a command of a world switch, or a
 *	scrub failed
 * @VGPU_PF_REASON_FULL_ACCESS_TIMEOUT: the guest did not release full access in time
 * @VGPU_PF_REASON_GUARD: the guest exceeded a limit of the guard
 * @VGPU_PF_REASON_DEVICE_LOST: the device was lost
 * @VGPU_PF_REASONS: number of reasons
 */
enum vgpu_pf_reason {
	VGPU_PF_REASON_NONE = 0,
	VGPU_PF_REASON_OPERATOR = 1,
	VGPU_PF_REASON_GUEST_REQUEST = 2,
	VGPU_PF_REASON_GUEST_FLR = 3,
	VGPU_PF_REASON_DETACH = 4,
	VGPU_PF_REASON_IDLE_TIMEOUT = 5,
	VGPU_PF_REASON_SAVE_TIMEOUT = 6,
	VGPU_PF_REASON_LOAD_TIMEOUT = 7,
	VGPU_PF_REASON_RUN_TIMEOUT = 8,
	VGPU_PF_REASON_BAD_STATUS = 9,
	VGPU_PF_REASON_FULL_ACCESS_TIMEOUT = 10,
	VGPU_PF_REASON_GUARD = 11,
	VGPU_PF_REASON_DEVICE_LOST = 12,
	VGPU_PF_REASONS = 13,
};

#ifdef __cplusplus
#define VGPU_UAPI_ASSERT(fact) static_assert(fact, #fact)
#else
#define VGPU_UAPI_ASSERT(fact) _Static_assert(fact, #fact)
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
