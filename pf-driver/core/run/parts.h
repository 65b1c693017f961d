/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions of the run-table scheduler for the rest of the core, grouped by file. Each function is
 * documented where it is defined. run/state.h has the private state of the scheduler.
 */
#ifndef VGPU_CORE_RUN_PARTS_H
#define VGPU_CORE_RUN_PARTS_H

#include "pf-driver/core/resource/parts.h"

VGPU_C_BEGIN

/* engine.c: handlers of events on the engine; decisions; which VF is in the engine */
void vgpu_pf_run_engine_start(struct vgpu_pf *pf);
void vgpu_pf_run_engine_stop(struct vgpu_pf *pf);
void vgpu_pf_run_engine_poll(struct vgpu_pf *pf);
void vgpu_pf_run_engine_decide(struct vgpu_pf *pf);
void vgpu_pf_run_engine_watch(struct vgpu_pf *pf);
void vgpu_pf_run_engine_wake(struct vgpu_pf *pf);
void vgpu_pf_run_engine_idle(struct vgpu_pf *pf);
void vgpu_pf_run_engine_expired(struct vgpu_pf *pf);
void vgpu_pf_run_engine_slice_timer(struct vgpu_pf *pf);
void vgpu_pf_run_engine_recover(struct vgpu_pf *pf);
void vgpu_pf_run_engine_set_exclusive(struct vgpu_pf *pf, const struct vgpu_vf *vf);
uint32_t vgpu_pf_run_engine_exclusive(const struct vgpu_pf *pf);
bool vgpu_pf_run_engine_is_loaded(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_run_engine_holds(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_run_engine_reset_vf(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* machine.c: one cell of the transition table, for a test that reads all cells */
struct vgpu_run_cell {
	uint8_t to; /* the new state, enum vgpu_scheduler_state */
	/* called in the new state; NULL: the input is impossible */
	void (*enter)(struct vgpu_pf *pf);
};
const struct vgpu_run_cell *vgpu_pf_run_machine_cell(uint32_t state, uint32_t input);
const char *vgpu_pf_run_machine_state_name(uint32_t state);
const char *vgpu_pf_run_machine_input_name(uint32_t input);

/* switch.c */
void vgpu_pf_run_switch_poll(struct vgpu_pf *pf);

/* tables.c */
int vgpu_pf_run_tables_set(struct vgpu_pf *pf, const struct vgpu_pf_call *call);
void vgpu_pf_run_tables_get(const struct vgpu_pf *pf, struct vgpu_pf_run_table *table);
void vgpu_pf_run_tables_load(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table);

/* contract.c, share.c: ns for which a VF with work was throttled by its cap; lag of a VF in ns */
uint64_t vgpu_pf_run_contract_throttled_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf);
int64_t vgpu_pf_run_share_lag(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* account.c: service of VFs, from the device's run log; statistics of world switches */
void vgpu_pf_run_account_start(struct vgpu_pf *pf);
void vgpu_pf_run_account_stop(struct vgpu_pf *pf);
void vgpu_pf_run_account_info(const struct vgpu_pf *pf, struct vgpu_pf_info *info);

/* describe.c */
uint32_t vgpu_pf_run_describe(struct vgpu_pf *pf, char *text, uint32_t bytes);

VGPU_C_END

#endif
