/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions of core/base, which every folder of the core may call: device access, texts, timers,
 * the event ring, replies, and a rate limit for reports. core/base is the lowest folder: its
 * functions call no function of another folder of the core. They are grouped by file; each function
 * is documented where it is defined.
 */
#ifndef VGPU_CORE_BASE_PARTS_H
#define VGPU_CORE_BASE_PARTS_H

#include "pf-driver/core/state.h"

VGPU_C_BEGIN

#define vgpu_for_each_vf(pf, vf)                                                                   \
	for ((vf) = &(pf)->vfs[1]; (vf) <= &(pf)->vfs[(pf)->device.total_vfs]; (vf)++)

/* the bit of a VF in a mask of VFs: bit n - 1 for VF n */
#define VGPU_VF_BIT(vf) (1u << ((vf)->number - 1))

/* device.c: registers and config space of the device */
uint32_t vgpu_pf_device_read(struct vgpu_pf *pf, uint32_t reg);
int vgpu_pf_device_write(struct vgpu_pf *pf, uint32_t reg, uint32_t value);
uint32_t vgpu_pf_device_read_bank(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg);
int vgpu_pf_device_write_bank(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg,
			      uint32_t value);
int vgpu_pf_device_write_bank64(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg_lo,
				uint64_t value);
uint64_t vgpu_pf_device_read_bank64(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg_lo);
uint32_t vgpu_pf_device_vsec_read(struct vgpu_pf *pf, uint32_t offset);
int vgpu_pf_device_vsec_write(struct vgpu_pf *pf, uint32_t offset, uint32_t value);
uint32_t vgpu_pf_device_scheduler_read(struct vgpu_pf *pf, uint32_t offset);
int vgpu_pf_device_scheduler_write(struct vgpu_pf *pf, uint32_t offset, uint32_t value);
void vgpu_pf_device_stop_dma(struct vgpu_pf *pf);
int vgpu_pf_device_probe(struct vgpu_pf *pf, struct vgpu_pf_device *device);
uint64_t vgpu_pf_device_time_ns(struct vgpu_pf *pf);

/* text.c: formatting, and CRC-32C */
#define LLU(value) ((unsigned long long)(value)) /* for %llu */
uint32_t vgpu_pf_text_vformat(char *out, uint32_t bytes, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
uint32_t vgpu_pf_text_format(char *out, uint32_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int vgpu_pf_text_fail(struct vgpu_pf *pf, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void vgpu_pf_text_log(struct vgpu_pf *pf, enum vgpu_os_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint32_t vgpu_pf_text_crc32c(uint32_t crc, const void *data, uint64_t bytes);

/* timer.c: deadlines of the PF and of its VFs */
uint64_t vgpu_pf_timer_now(struct vgpu_pf *pf);
uint64_t vgpu_pf_timer_scaled_ns(const struct vgpu_pf *pf, uint64_t ms);
void vgpu_pf_timer_set(struct vgpu_pf *pf, enum vgpu_pf_timer_id id, uint64_t delay_ns);
void vgpu_pf_timer_clear(struct vgpu_pf *pf, enum vgpu_pf_timer_id id);
void vgpu_pf_timer_set_vf(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_timer id,
			  uint64_t delay_ns);
void vgpu_pf_timer_clear_vf(struct vgpu_vf *vf, enum vgpu_vf_timer id);
bool vgpu_pf_timer_expire(uint64_t *deadline_ns, uint64_t now);
void vgpu_pf_timer_arm(struct vgpu_pf *pf);

/* one request of the uapi, by a client or by the platform */
struct vgpu_pf_call {
	void *payload;	 /* the operation's struct */
	uint64_t token;	 /* names the request in vgpu_os_ops.request_done() */
	uint64_t client; /* number of the client; 0: the platform itself */
	/* the VF in the payload; &vfs[0]: the core chooses a VF; NULL: the operation has no VF */
	struct vgpu_vf *vf;
};

/* event.c: the ring of events that clients read */
void vgpu_pf_event_init(struct vgpu_pf *pf);
void vgpu_pf_event_push(struct vgpu_pf *pf, const struct vgpu_pf_event *event);
void vgpu_pf_event_simple(struct vgpu_pf *pf, enum vgpu_pf_event_type type, uint32_t vf,
			  uint64_t arg, uint64_t arg2);

/* reply.c: replies to requests that returned -EINPROGRESS */
void vgpu_pf_reply_add(struct vgpu_pf *pf, uint64_t token, int error, const char *message);
void vgpu_pf_reply_flush(struct vgpu_pf *pf);

/* notify.c: rate limit for some events and log lines that a guest causes */
bool vgpu_pf_notify_allows(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_notify_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);

VGPU_C_END

#endif
