/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions of the PF core of one GPU for its home (the platform: kernel module, vgpu-pf,
 * test).
 *
 *   init -> attach (the device is there) -> interrupt, timer, request, stream_ready ...
 *        -> detach (the device is lost), park (it is about to be reset), leave (the home ends)
 *
 * vgpu_pf_timer() gives up a device that does not come back from its reset: device.is_attached is
 * false then, and the home attaches again.
 *
 * The home serialises these calls; none of them sleeps. A call that can change a VF or the engine
 * ends by settling: events of VFs are carried out, the run-table scheduler decides, the journal is
 * written, finished requests are reported, the timer is armed. After a crash of the home, a new
 * core adopts the VFs in service without a reset, from registers, VF page tables and the journal.
 */
#ifndef VGPU_CORE_PF_H
#define VGPU_CORE_PF_H

#include "pf-driver/core/base/os.h"
#include "pf-driver/uapi/vgpu_pf.h"
#include "pf-driver/uapi/vgpu_pf_limits.h"

VGPU_C_BEGIN

enum vgpu_pf_home {
	VGPU_PF_HOME_PROCESS = 0,
	VGPU_PF_HOME_KERNEL = 1,
};

struct vgpu_pf_params {
	uint64_t boot_id; /* differs from those of all earlier cores */
	enum vgpu_pf_home home;
	uint32_t time_scale;	   /* factor on waits for guests and the device; 1 on silicon */
	uint32_t max_gap_ms;	   /* longest time of a VF with work off the engine; 0: no limit */
	bool is_stepwise;	   /* switch by IDLE SAVE LOAD RUN instead of CONTEXT_SWITCH */
	void *event_ring;	   /* zeroed memory shared with readers */
	uint32_t event_ring_bytes; /* one page and room for at least one event */
	char name[VGPU_PF_NAME_BYTES];
};

/* private to the core (state.h); the home allocates vgpu_pf_bytes() of memory for it */
struct vgpu_pf;

/* what the device offers; read and checked when it is attached */
struct vgpu_pf_device {
	bool is_attached;
	uint32_t total_vfs;
	uint64_t vram_bytes;
	uint64_t aperture_bytes;
	uint32_t doorbell_pages;
	uint32_t cu_count;
	uint32_t vsec;	    /* config offset of the GPU-IOV capability */
	uint32_t scheduler; /* config offset of the GFX scheduler block */
};

/* properties of an operation, so that no home keeps a list of operations */
struct vgpu_pf_op_traits {
	uint32_t op;	   /* enum vgpu_pf_op */
	uint32_t bytes;	   /* size of the operation's struct */
	bool is_reading;   /* allowed to a client that may only read */
	bool has_stream;   /* moves data through a file of the client */
	bool is_leased;	   /* refused while another client holds the policy lease */
	bool needs_device; /* refused while the device is lost */
	bool is_homes;	   /* the home answers it, not the core */
};

const struct vgpu_pf_op_traits *vgpu_pf_request_traits(uint32_t op);

/* the state of one VF that homes can read */
struct vgpu_pf_vf_view {
	enum vgpu_pf_vf_state state;
	uint32_t generation;
	uint64_t vram_bytes;
	uint32_t preempt_timeout_us;
	bool is_provisioned; /* the VF owns resources */
	bool is_attached;    /* a client has the function open */
	bool has_driver;     /* the guest's driver is loaded */
	bool wants_durable;  /* the VF is scrubbed and waits for SCRUB_DURABLE */
	bool is_capped;	     /* throttled: skipped because its cap has no tokens left */
	uint32_t weight;     /* in force; 0: the table in force has none for the VF */
	uint8_t uuid[16];
};

/* the state of the engine that the simulator reads */
struct vgpu_pf_engine_view {
	bool is_switching;
	bool is_broken;	   /* a command failed, and the engine has not recovered */
	uint32_t reserved; /* bit n: VF n is in the engine or next, served by its reservation */
};

uint32_t vgpu_pf_bytes(void);
struct vgpu_pf_vf_view vgpu_pf_view_vf(const struct vgpu_pf *pf, uint32_t vf);
bool vgpu_pf_view_was_lost_in_reset(const struct vgpu_pf *pf);
const struct vgpu_pf_device *vgpu_pf_view_device(const struct vgpu_pf *pf);
uint32_t vgpu_pf_view_max_gap(const struct vgpu_pf *pf);
uint64_t vgpu_pf_view_next_event(const struct vgpu_pf *pf);
const char *vgpu_pf_view_message(const struct vgpu_pf *pf);
bool vgpu_pf_view_is_leased(const struct vgpu_pf *pf);
struct vgpu_pf_engine_view vgpu_pf_view_engine(const struct vgpu_pf *pf);

void vgpu_pf_init(struct vgpu_pf *pf, struct vgpu_os *os, const struct vgpu_pf_params *params);
int vgpu_pf_attach(struct vgpu_pf *pf);
void vgpu_pf_detach(struct vgpu_pf *pf);
void vgpu_pf_park(struct vgpu_pf *pf);
void vgpu_pf_leave(struct vgpu_pf *pf);
void vgpu_pf_interrupt(struct vgpu_pf *pf);
void vgpu_pf_timer(struct vgpu_pf *pf);
void vgpu_pf_stream_ready(struct vgpu_pf *pf);
void vgpu_pf_request_cancel(struct vgpu_pf *pf, uint64_t token);
int vgpu_pf_request_run_for(struct vgpu_pf *pf, uint64_t client, uint32_t op, void *payload,
			    uint64_t token);
/* Do one operation for the home itself. */
static inline int vgpu_pf_request_run(struct vgpu_pf *pf, uint32_t op, void *payload,
				      uint64_t token)
{
	return vgpu_pf_request_run_for(pf, 0, op, payload, token);
}
bool vgpu_pf_request_gone(struct vgpu_pf *pf, uint64_t client);
void vgpu_pf_report_policy(struct vgpu_pf *pf, uint32_t vf, enum vgpu_pf_policy policy,
			   uint64_t value);
void vgpu_pf_set_max_gap(struct vgpu_pf *pf, uint32_t max_gap_ms);
uint32_t vgpu_pf_weight_of(const struct vgpu_pf *pf, uint32_t vf);
uint32_t vgpu_pf_quantum_of(const struct vgpu_pf *pf, uint32_t vf);
int vgpu_pf_set_preempt_timeout(struct vgpu_pf *pf, uint32_t vf, uint32_t timeout_us);

/* top/share.c: parts of a whole by weights, floors and caps, for homes that plan run tables */
#define VGPU_SHARE_WHOLE_PPM  1000000u
#define VGPU_SHARE_WEIGHT_MAX 1000000000000ull

struct vgpu_share {
	uint64_t weight;
	uint32_t least_ppm, most_ppm; /* floor and cap */
	uint32_t ppm;		      /* result */
};

void vgpu_pf_share_divide(struct vgpu_share *shares, uint32_t count);

/* text and names for bug reports */
uint32_t vgpu_pf_dump_trace(struct vgpu_pf *pf, char *text, uint32_t bytes);
uint32_t vgpu_pf_dump_text(struct vgpu_pf *pf, char *text, uint32_t bytes);
const char *vgpu_pf_control_state_name(uint32_t state);
const char *vgpu_pf_control_event_name(uint32_t event);

VGPU_C_END

#endif
