/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions that the files of core/top share, and that unit tests call. pf.h declares the functions
 * of core/top for the platform. The functions of this header are grouped by file; each function is
 * documented where it is defined.
 */
#ifndef VGPU_CORE_TOP_PARTS_H
#define VGPU_CORE_TOP_PARTS_H

#include "pf-driver/core/vf/parts.h"

VGPU_C_BEGIN

/* timers.c, device_reset.c, dump.c */
void vgpu_pf_timers_run(struct vgpu_pf *pf);
void vgpu_pf_device_reset_begin(struct vgpu_pf *pf);
void vgpu_pf_device_reset_poll(struct vgpu_pf *pf);
bool vgpu_pf_device_reset_is_on(struct vgpu_pf *pf);
int vgpu_pf_dump_request(struct vgpu_pf *pf, struct vgpu_pf_stream *payload, uint64_t token);

/* pf.c */
void vgpu_pf_watchdog(struct vgpu_pf *pf);
void vgpu_pf_declare_lost(struct vgpu_pf *pf);
void vgpu_pf_do_pending(struct vgpu_pf *pf);
void vgpu_pf_reprogram_all(struct vgpu_pf *pf);

VGPU_C_END

#endif
