/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions for the files of core/top and for unit tests. pf.h declares the functions of core/top
 * that platforms call. The functions of this header are grouped by file; each function is
 * documented where it is defined.
 */
#ifndef VGPU_CORE_TOP_PARTS_H
#define VGPU_CORE_TOP_PARTS_H

#include "pf-driver/core/vf/parts.h"

VGPU_C_BEGIN

/* timers.c: handlers of expired timers */
void vgpu_pf_timers_run(struct vgpu_pf *pf);

/* device_reset.c: reset of the whole device */
void vgpu_pf_device_reset_begin(struct vgpu_pf *pf);
void vgpu_pf_device_reset_poll(struct vgpu_pf *pf);
bool vgpu_pf_device_reset_is_on(struct vgpu_pf *pf);

/* dump.c: the text for bug reports */
int vgpu_pf_dump_request(struct vgpu_pf *pf, struct vgpu_pf_stream *payload, uint64_t token);

/* pf.c: life cycle of the PF, and the pending work at the end of a call */
void vgpu_pf_watchdog(struct vgpu_pf *pf);
void vgpu_pf_declare_lost(struct vgpu_pf *pf);
void vgpu_pf_do_pending(struct vgpu_pf *pf);
void vgpu_pf_reprogram_all(struct vgpu_pf *pf);

VGPU_C_END

#endif
