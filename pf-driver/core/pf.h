/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/**
 * DOC: The PF core
 *
 * The PF core is the part of the PF driver that partitions one GPU into VFs, schedules the VFs, and
 * resets and scrubs them. This header is the interface between the core and its platform, the
 * program that runs the core: the kernel module, the process vgpu-pf, or a test.
 *
 *   init -> attach (the device is there) -> interrupt, timer, request_run, stream_ready ...
 *        -> surprise_remove (the device is lost), suspend (the device is about to be reset)
 *             -> attach (the device is back) ...
 *        -> shutdown (the platform ends)
 *
 * These are the functions below, without the prefix vgpu_pf_.
 *
 * The core itself may reset the whole device. If this reset does not end in time, vgpu_pf_timer()
 * sets is_attached of struct vgpu_pf_device to false. The platform then retries vgpu_pf_attach()
 * until the call succeeds.
 *
 * The platform must call one function at a time, unless the comment of a function allows more. No
 * function sleeps, except in a service of the platform (base/os.h). At the end of each call that
 * can change a VF or the engine, the core does the pending work: it carries out events of VFs,
 * decides which VF runs next, writes the checkpoint (a record in the PF's VRAM), reports finished
 * requests, and arms the timer.
 *
 * After a crash of the platform, a new core adopts the VFs if the device has a valid checkpoint:
 * the new core reads the state of the VFs from registers, VF page tables and the checkpoint. The
 * VFs stay in service; a reset or scrub that was in progress begins again.
 */
#ifndef VGPU_CORE_PF_H
#define VGPU_CORE_PF_H

#include "pf-driver/core/base/os.h"
#include "pf-driver/uapi/vgpu_pf.h"
#include "pf-driver/uapi/vgpu_pf_limits.h"

VGPU_C_BEGIN

/**
 * enum vgpu_pf_platform - kind of platform, as in vgpu_pf_info.platform
 * @VGPU_PF_PLATFORM_PROCESS: the process vgpu-pf
 * @VGPU_PF_PLATFORM_KERNEL: the kernel module
 */
enum vgpu_pf_platform {
	VGPU_PF_PLATFORM_PROCESS = 0,
	VGPU_PF_PLATFORM_KERNEL = 1,
};

/**
 * struct vgpu_pf_params - parameters that the platform sets when it starts a core
 * @boot_id: a number that differs for each start of a core, such as a random number
 * @platform: kind of the platform
 * @time_scale: factor on waits for guests and the device, at least 1; 1 on silicon, larger under
 *	emulation
 * @max_gap_ms: a VF with work that has waited this long for the engine gets a boost: a short slice
 *	before the run table's entries of its priority class (run/decide.c); 0: no limit
 * @is_stepwise: true if a world switch uses the commands IDLE, SAVE, LOAD and RUN instead of the
 *	single command CONTEXT_SWITCH
 * @event_ring: zeroed memory shared with readers; the platform owns it
 * @event_ring_bytes: size of event_ring, at least VGPU_PF_RING_EVENTS_OFFSET (the ring's head) plus
 *	one event
 * @name: name of the GPU for vgpu_pf_info.name, NUL-terminated
 */
struct vgpu_pf_params {
	uint64_t boot_id;
	enum vgpu_pf_platform platform;
	uint32_t time_scale;
	uint32_t max_gap_ms;
	bool is_stepwise;
	void *event_ring;
	uint32_t event_ring_bytes;
	char name[VGPU_PF_NAME_BYTES];
};

/* private to the core (state.h); the platform allocates vgpu_pf_bytes() bytes for this struct */
struct vgpu_pf;

/**
 * struct vgpu_pf_device - properties of the device
 * @is_attached: true if a device is attached; otherwise the other members describe the
 *	last device, or are 0 before the first attach
 * @total_vfs: number of VFs, 1..VGPU_PF_MAX_VFS
 * @vram_bytes: size of the device's VRAM
 * @aperture_bytes: size of a VF's BAR0, the upper limit of the VF's VRAM
 * @doorbell_pages: upper limit of the doorbell pages of one VF
 * @cu_count: number of compute units
 * @vsec: offset of the GPU-IOV capability in the PF's config space, in bytes
 * @scheduler: offset of the GFX scheduler block in the PF's config space, in bytes
 *
 * vgpu_pf_attach() reads the values from the device, and refuses a device with a value that the
 * core does not support.
 */
struct vgpu_pf_device {
	bool is_attached;
	uint32_t total_vfs;
	uint64_t vram_bytes;
	uint64_t aperture_bytes;
	uint32_t doorbell_pages;
	uint32_t cu_count;
	uint32_t vsec;
	uint32_t scheduler;
};

/**
 * struct vgpu_pf_op_traits - properties of an operation of the uapi
 * @op: enum vgpu_pf_op
 * @bytes: size of the operation's struct
 * @is_open_to_readers: true if read-only clients may call the operation
 * @has_stream: true if the operation moves data through a file of the client
 * @is_leased: true if the core refuses the operation of a client while another client holds the
 *	policy lease (struct vgpu_pf_lease)
 * @needs_device: true if the core refuses the operation while no device is attached
 * @is_handled_by_platform: true if only a platform can handle the operation; the core refuses it
 */
struct vgpu_pf_op_traits {
	uint32_t op;
	uint32_t bytes;
	bool is_open_to_readers;
	bool has_stream;
	bool is_leased;
	bool needs_device;
	bool is_handled_by_platform;
};

/**
 * vgpu_pf_request_traits() - get the properties of an operation
 * @op: enum vgpu_pf_op, or any number from a client
 *
 * Return: the properties; NULL if there is no such operation. Any thread may call this.
 */
const struct vgpu_pf_op_traits *vgpu_pf_request_traits(uint32_t op);

/**
 * struct vgpu_pf_vf_view - the state of one VF that platforms can read
 * @state: state of the life cycle
 * @generation: counts the provisionings of the VF; 0: none so far
 * @vram_bytes: provisioned VRAM; only valid if is_provisioned
 * @preempt_timeout_us: time that the VF has to leave the engine, unless the VF's contract sets
 *	another time; 0: default (100 ms)
 * @is_provisioned: true if the VF has resources; false while the VF is being provisioned
 * @is_attached: true if a client such as QEMU has the VF's function open
 * @has_driver: true if the guest's driver is loaded
 * @awaits_durable: true if the VF is scrubbed and waits for the request SCRUB_DURABLE
 * @is_throttled: true if the VF's cap has too few tokens; the scheduler then serves the VF only
 *	from its reservation or in exclusive full access
 * @weight: weight by which the VF is served now; 0: the run table in force gives the VF no weight
 * @uuid: uuid of the PROVISION request
 */
struct vgpu_pf_vf_view {
	enum vgpu_pf_vf_state state;
	uint32_t generation;
	uint64_t vram_bytes;
	uint32_t preempt_timeout_us;
	bool is_provisioned;
	bool is_attached;
	bool has_driver;
	bool awaits_durable;
	bool is_throttled;
	uint32_t weight;
	uint8_t uuid[16];
};

/**
 * struct vgpu_pf_engine_view - the state of the engine that the simulator reads
 * @is_switching: true if a world switch is in progress
 * @is_broken: true if the engine is not usable yet, because a world switch command failed, or
 *	because a command from before the scheduler's start is still in execution
 * @reserved: bit n for VF n (bit 0 is unused): 1 if the VF is served from its reservation or gang
 *	slot. Valid only for the VF in the engine and, during a world switch, for the VF that
 *	enters.
 */
struct vgpu_pf_engine_view {
	bool is_switching;
	bool is_broken;
	uint32_t reserved;
};

/**
 * vgpu_pf_bytes() - get the size of struct vgpu_pf, which the platform allocates
 *
 * Return: bytes.
 */
uint32_t vgpu_pf_bytes(void);

/**
 * vgpu_pf_view_vf() - read the state of a VF
 * @pf: the PF
 * @vf: 1..total_vfs
 *
 * Return: a copy.
 */
struct vgpu_pf_vf_view vgpu_pf_view_vf(const struct vgpu_pf *pf, uint32_t vf);

/**
 * vgpu_pf_view_device_was_lost_in_reset() - check whether the device was lost in a reset
 * @pf: the PF
 *
 * Return: true if the core detached the device during a reset that the core had begun, and no
 * attach has succeeded since.
 */
bool vgpu_pf_view_device_was_lost_in_reset(const struct vgpu_pf *pf);

/**
 * vgpu_pf_view_device() - get the properties of the device
 * @pf: the PF
 *
 * total_vfs, vram_bytes, aperture_bytes and cu_count are constant after the first attach, so the
 * platform may read them while another thread is in the core.
 *
 * Return: a pointer to the properties, valid as long as the memory of the PF.
 */
const struct vgpu_pf_device *vgpu_pf_view_device(const struct vgpu_pf *pf);

/**
 * vgpu_pf_view_max_gap() - get max_gap_ms (struct vgpu_pf_params)
 * @pf: the PF
 *
 * The platform may call this while another thread is in the core.
 *
 * Return: ms; 0: no limit.
 */
uint32_t vgpu_pf_view_max_gap(const struct vgpu_pf *pf);

/**
 * vgpu_pf_view_next_event() - get the sequence number of the next event
 * @pf: the PF
 *
 * Return: the number; the first event has 1.
 */
uint64_t vgpu_pf_view_next_event(const struct vgpu_pf *pf);

/**
 * vgpu_pf_view_message() - get the error text of a call that has just failed
 * @pf: the PF
 *
 * Return: text without a line end; valid until the next call into the core.
 */
const char *vgpu_pf_view_message(const struct vgpu_pf *pf);

/**
 * vgpu_pf_view_is_leased() - check whether a client holds the policy lease
 * @pf: the PF
 *
 * The platform may call this while another thread is in the core.
 *
 * Return: true if a client holds the lease.
 */
bool vgpu_pf_view_is_leased(const struct vgpu_pf *pf);

/**
 * vgpu_pf_view_engine() - read the state of the engine, for the simulator
 * @pf: the PF
 *
 * Return: a copy.
 */
struct vgpu_pf_engine_view vgpu_pf_view_engine(const struct vgpu_pf *pf);

/*
 * Make a PF without a device. pf: vgpu_pf_bytes() bytes of memory, with any contents; os: services
 * of the platform, which must outlive the PF; params: copied. (This is not kernel-doc, because
 * clang's -Wdocumentation takes @params for a command.)
 */
void vgpu_pf_init(struct vgpu_pf *pf, struct vgpu_os *os, const struct vgpu_pf_params *params);

/**
 * vgpu_pf_attach() - start to use the device
 * @pf: a PF without a device
 *
 * If the device has a valid checkpoint, the core adopts the VFs in the checkpoint. Otherwise the
 * first attach of this PF makes all VFs ABSENT, and a later attach programs the resources of the
 * VFs again. After a reset in which the device was lost, the core ignores the checkpoint.
 *
 * Return: 0; or -ENODEV with a message if the device is gone, is not a supported vgpu device,
 * differs from the last device, or is still in the reset in which it was lost. After an error no
 * device is attached.
 */
int vgpu_pf_attach(struct vgpu_pf *pf);

/**
 * vgpu_pf_surprise_remove() - handle the loss of the device, which does not answer any more
 * @pf: the PF; if no device is attached, the call does nothing
 *
 * Before the call, the platform must end the PF's access to host memory (bus mastering).
 */
void vgpu_pf_surprise_remove(struct vgpu_pf *pf);

/**
 * vgpu_pf_suspend() - suspend the core before the device is reset or loses its power
 * @pf: the PF; if no device is attached, the call does nothing
 *
 * Does the same as vgpu_pf_surprise_remove(), but logs no error. Before the call, the platform must
 * end the PF's access to host memory (bus mastering).
 */
void vgpu_pf_suspend(struct vgpu_pf *pf);

/**
 * vgpu_pf_shutdown() - shut the core down before the platform ends
 * @pf: the PF; if no device is attached, the call does nothing
 *
 * The device keeps the state of the VFs, and the next core adopts them (vgpu_pf_attach()). Before
 * the call, the platform must end the PF's access to host memory (bus mastering).
 */
void vgpu_pf_shutdown(struct vgpu_pf *pf);

/**
 * vgpu_pf_interrupt() - handle an MSI-X interrupt of the PF
 * @pf: the PF
 *
 * The core reads the causes from the device, so it does not matter which vector has fired.
 */
void vgpu_pf_interrupt(struct vgpu_pf *pf);

/**
 * vgpu_pf_timer() - handle the expiry of the timer that the core has armed
 * @pf: the PF
 */
void vgpu_pf_timer(struct vgpu_pf *pf);

/**
 * vgpu_pf_stream_ready() - continue the stream in progress, because its file is ready
 * @pf: the PF
 *
 * The platform calls this once the file can move data, after its service stream_write or
 * stream_read has returned -EAGAIN.
 */
void vgpu_pf_stream_ready(struct vgpu_pf *pf);

/**
 * vgpu_pf_request_cancel() - detach a request from its client, which has stopped waiting
 * @pf: the PF
 * @token: token of the request
 *
 * After this call, the core does not use the payload. The action that the request started
 * continues, but the core calls request_done() only if the request has a stream.
 */
void vgpu_pf_request_cancel(struct vgpu_pf *pf, uint64_t token);

/**
 * vgpu_pf_request_run_for() - do one operation of the uapi for a client
 * @pf: the PF
 * @client: number that the platform gave the client; 0: the platform itself, which needs no lease
 * @op: enum vgpu_pf_op
 * @payload: the operation's struct, vgpu_pf_op_traits.bytes long; the core fills in its out
 *	members. The payload must stay valid until the request is finished or cancelled.
 * @token: names the request in vgpu_os_ops.request_done(); not 0, and not the token of another
 *	request that is in progress
 *
 * Return: 0; -EINPROGRESS if the core reports the end by request_done(), possibly before this call
 * returns; or another negative errno, for which vgpu_pf_view_message() has the text.
 */
int vgpu_pf_request_run_for(struct vgpu_pf *pf, uint64_t client, uint32_t op, void *payload,
			    uint64_t token);

/**
 * vgpu_pf_request_run() - do one operation of the uapi for the platform itself
 * @pf: the PF
 * @op: as for vgpu_pf_request_run_for()
 * @payload: as for vgpu_pf_request_run_for()
 * @token: as for vgpu_pf_request_run_for()
 *
 * Return: as vgpu_pf_request_run_for().
 */
static inline int vgpu_pf_request_run(struct vgpu_pf *pf, uint32_t op, void *payload,
				      uint64_t token)
{
	return vgpu_pf_request_run_for(pf, 0, op, payload, token);
}

/**
 * vgpu_pf_request_client_gone() - end the policy lease of a client that is gone
 * @pf: the PF
 * @client: number of the client
 *
 * Return: true if the client held the lease.
 */
bool vgpu_pf_request_client_gone(struct vgpu_pf *pf, uint64_t client);

/**
 * vgpu_pf_report_policy() - push the event POLICY, because a policy was written to sysfs
 * @pf: the PF
 * @vf: VF number; 0: all VFs
 * @policy: the policy that was written
 * @value: the new value, in the unit of the policy (docs/pf-driver.md)
 *
 * The platform calls this while a client holds the policy lease, because then this client, not the
 * platform, plans the run table and has to apply the policy.
 */
void vgpu_pf_report_policy(struct vgpu_pf *pf, uint32_t vf, enum vgpu_pf_policy policy,
			   uint64_t value);

/**
 * vgpu_pf_set_max_gap() - set max_gap_ms (struct vgpu_pf_params)
 * @pf: the PF
 * @max_gap_ms: in ms; 0: no limit
 */
void vgpu_pf_set_max_gap(struct vgpu_pf *pf, uint32_t max_gap_ms);

/**
 * vgpu_pf_weight_of() - get the weight of a VF in the newest run table
 * @pf: the PF
 * @vf: 1..total_vfs
 *
 * The newest table may not be in force yet.
 *
 * Return: 1 to VGPU_PF_WEIGHT_MAX; 0: the VF has no weight.
 */
uint32_t vgpu_pf_weight_of(const struct vgpu_pf *pf, uint32_t vf);

/**
 * vgpu_pf_quantum_of() - get the quantum of a VF's first entry in the newest run table
 * @pf: the PF
 * @vf: 1..total_vfs
 *
 * The newest table may not be in force yet.
 *
 * Return: us; 0: the VF has no entry.
 */
uint32_t vgpu_pf_quantum_of(const struct vgpu_pf *pf, uint32_t vf);

/**
 * vgpu_pf_set_preempt_timeout() - set how long a VF may take to leave the engine
 * @pf: the PF
 * @vf: 1..total_vfs
 * @timeout_us: at most VGPU_PF_PREEMPT_TIMEOUT_MAX_US; 0: default (100 ms)
 *
 * If preempt_timeout_us of the VF's contract is not 0, that time counts instead. A PROVISION or
 * RELEASE of the VF overwrites the time that this function has set.
 *
 * Return: 0, or -EINVAL with a message.
 */
int vgpu_pf_set_preempt_timeout(struct vgpu_pf *pf, uint32_t vf, uint32_t timeout_us);

#define VGPU_SHARE_FULL_PPM   1000000u	       /* the whole */
#define VGPU_SHARE_WEIGHT_MAX 1000000000000ull /* weight * VGPU_SHARE_FULL_PPM fits 64 bits */

/**
 * struct vgpu_share - one part of a whole, such as a VF's share of the engine
 * @weight: at most VGPU_SHARE_WEIGHT_MAX
 * @min_ppm: floor in millionths of the whole
 * @max_ppm: cap in millionths of the whole; a cap below the floor counts as the floor
 * @ppm: out: the part in millionths of the whole
 */
struct vgpu_share {
	uint64_t weight;
	uint32_t min_ppm, max_ppm;
	uint32_t ppm;
};

/**
 * vgpu_pf_share_divide() - divide a whole in proportion to weights, between floors and caps
 * @shares: the parts; ppm is filled in
 * @count: number of parts, at most VGPU_PF_MAX_VFS
 *
 * A part of weight 0 gets its floor. If no weight is 0, then
 * sum of parts = max(sum of floors, min(sum of caps, whole)), except for rounding.
 */
void vgpu_pf_share_divide(struct vgpu_share *shares, uint32_t count);

/**
 * vgpu_pf_dump_trace() - list the last life cycle transitions of VFs, one per line
 * @pf: the PF
 * @text: output, NUL-terminated; unchanged if there was no transition
 * @bytes: size of text, at least 2
 *
 * Return: characters written.
 */
uint32_t vgpu_pf_dump_trace(struct vgpu_pf *pf, char *text, uint32_t bytes);

/**
 * vgpu_pf_dump_text() - describe device, engine, VFs and last transitions, for a bug report
 * @pf: the PF
 * @text: output, NUL-terminated
 * @bytes: size of text, at least 2
 *
 * Return: characters written.
 */
uint32_t vgpu_pf_dump_text(struct vgpu_pf *pf, char *text, uint32_t bytes);

/**
 * vgpu_pf_control_state_name() - get the name of a state of a VF
 * @state: enum vgpu_pf_vf_state, or any number
 *
 * Return: the name; "?" if there is no such state. Any thread may call this.
 */
const char *vgpu_pf_control_state_name(uint32_t state);

/**
 * vgpu_pf_control_event_name() - get the name of an event of a VF's life
 * @event: enum vgpu_vf_event, or any number
 *
 * Return: the name; "?" if there is no such event. Any thread may call this.
 */
const char *vgpu_pf_control_event_name(uint32_t event);

VGPU_C_END

#endif
