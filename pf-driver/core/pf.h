/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The PF core of one GPU: the calls a home makes into it. Its state is in state.h.
 *
 *   init -> attach (device is there) -> interrupt, timer, request, stream_ready ... -> detach, park
 *
 * A device that does not come back from its reset is given up by the core itself, within any of
 * these calls: device.is_attached is false then, and the home attaches again as after a loss.
 *
 * The home serialises these calls; none of them sleeps. Each ends by settling: the run table
 * executor takes its decisions, the journal is written, finished requests are reported and the one
 * timer is armed. After a crash of the home a new core finds the VFs in service on the device
 * (VGPU bank registers, VF page tables, journal in PF VRAM) and adopts them without resetting them.
 */
#ifndef VGPU_CORE_PF_H
#define VGPU_CORE_PF_H

#include "pf-driver/core/base/os.h"
#include "pf-driver/uapi/vgpu_pf.h"
#include "pf-driver/uapi/vgpu_pf_limits.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vgpu_pf_home {
	VGPU_PF_HOME_PROCESS = 0,
	VGPU_PF_HOME_KERNEL = 1,
};

struct vgpu_pf_params {
	uint64_t boot_id; /* a value no core before had */
	enum vgpu_pf_home home;
	uint32_t time_scale;	   /* factor on waits for guests and the device; 1: silicon */
	uint32_t max_gap_ms;	   /* a VF with work is off the engine no longer than about this */
	bool is_stepwise;	   /* IDLE SAVE LOAD RUN instead of CONTEXT_SWITCH */
	void *event_ring;	   /* zeroed memory shared with readers */
	uint32_t event_ring_bytes; /* one page and room for at least one event */
	char name[VGPU_PF_NAME_BYTES];
};

/* private to the core (state.h); a home gives it vgpu_pf_bytes() of memory */
struct vgpu_pf;

/* facts read at attach, checked */
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

/* what an operation is: homes ask instead of listing operations themselves */
struct vgpu_pf_op_traits {
	uint32_t op;	   /* enum vgpu_pf_op */
	uint32_t bytes;	   /* of its struct */
	bool is_reading;   /* anybody may ask it who may open the PF */
	bool has_stream;   /* moves data through a file of the client */
	bool is_leased;	   /* refused while another client holds the policy lease */
	bool needs_device; /* refused while the device is lost */
	bool is_homes;	   /* answered by the home, not by the core */
};

const struct vgpu_pf_op_traits *vgpu_pf_request_traits(uint32_t op);

/* what homes may know of one VF */
struct vgpu_pf_vf_view {
	enum vgpu_pf_vf_state state;
	uint32_t generation;
	uint64_t vram_bytes;
	uint32_t preempt_timeout_us;
	bool is_provisioned; /* it owns resources */
	bool is_attached;    /* its function has a client */
	bool has_driver;     /* a guest's driver has loaded */
	bool wants_durable;  /* scrubbed, and waits for SCRUB_DURABLE */
	bool is_capped;	     /* passed over for want of tokens */
	uint32_t weight;     /* in force; 0: the table in force gives it none */
	uint8_t uuid[16];
};

/* what a simulation may know of the engine */
struct vgpu_pf_engine_view {
	bool is_switching;
	bool is_broken;	   /* a command failed; a reset frees the engine */
	uint32_t reserved; /* bit per VF number: in the engine or next, on its reservation */
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

int vgpu_pf_init(struct vgpu_pf *pf, struct vgpu_os *os, const struct vgpu_pf_params *params);
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
int vgpu_pf_request_run(struct vgpu_pf *pf, uint32_t op, void *payload, uint64_t token);
bool vgpu_pf_request_gone(struct vgpu_pf *pf, uint64_t client);
void vgpu_pf_report_policy(struct vgpu_pf *pf, uint32_t vf, enum vgpu_pf_policy policy,
			   uint64_t value);
void vgpu_pf_set_max_gap(struct vgpu_pf *pf, uint32_t max_gap_ms);
uint32_t vgpu_pf_weight_of(const struct vgpu_pf *pf, uint32_t vf);
uint32_t vgpu_pf_quantum_of(const struct vgpu_pf *pf, uint32_t vf);
int vgpu_pf_set_preempt_timeout(struct vgpu_pf *pf, uint32_t vf, uint32_t timeout_us);

/* share.c: parts of a whole, for homes that plan run tables */
#define VGPU_SHARE_WHOLE_PPM  1000000u
#define VGPU_SHARE_WEIGHT_MAX 1000000000000ull

struct vgpu_share {
	uint64_t weight;
	uint32_t least_ppm, most_ppm;
	uint32_t ppm;
};

void vgpu_pf_share_divide(struct vgpu_share *shares, uint32_t count);

/* for those who look at the PF */
uint32_t vgpu_pf_dump_trace(struct vgpu_pf *pf, char *text, uint32_t bytes);
uint32_t vgpu_pf_dump_text(struct vgpu_pf *pf, char *text, uint32_t bytes);
const char *vgpu_pf_control_state_name(uint32_t state);
const char *vgpu_pf_control_event_name(uint32_t event);

#ifdef __cplusplus
}
#endif

#endif
