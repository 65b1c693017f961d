/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The core as a whole: requests, journal, dump; the calls of pf.h. Unit tests may include this.
 * Grouped by file; each function is documented where it is defined.
 */
#ifndef VGPU_CORE_TOP_PARTS_H
#define VGPU_CORE_TOP_PARTS_H

#include "pf-driver/core/vf/parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* request.c */
void vgpu_pf_request_finish(struct vgpu_pf *pf, uint64_t token, int error, const char *message);
void vgpu_pf_request_flush(struct vgpu_pf *pf);

/* journal.c */
void vgpu_pf_journal_mark(struct vgpu_pf *pf);
void vgpu_pf_journal_doubt(struct vgpu_pf *pf);
void vgpu_pf_journal_mark_table(struct vgpu_pf *pf);
void vgpu_pf_journal_flush(struct vgpu_pf *pf);
bool vgpu_pf_journal_load(struct vgpu_pf *pf);

/* pf.c */
void vgpu_pf_watchdog(struct vgpu_pf *pf);
void vgpu_pf_lose_vf(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_give_up(struct vgpu_pf *pf);
void vgpu_pf_settle(struct vgpu_pf *pf);
void vgpu_pf_reprogram_all(struct vgpu_pf *pf);

#ifdef __cplusplus
}
#endif

#endif
