/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The run-table scheduler as the rest of the core sees it; run/state.h is its inside.
 * Grouped by file; each function is documented where it is defined.
 */
#ifndef VGPU_CORE_RUN_PARTS_H
#define VGPU_CORE_RUN_PARTS_H

#include "pf-driver/core/resource/parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* run/switch.c */
void vgpu_pf_run_switch_start(struct vgpu_pf *pf, uint32_t from, uint32_t to);
void vgpu_pf_run_switch_poll(struct vgpu_pf *pf);
bool vgpu_pf_run_switch_is_engine_free(struct vgpu_pf *pf);
void vgpu_pf_run_switch_abandon(struct vgpu_pf *pf);

/* run/machine.c */
void vgpu_pf_run_machine_start(struct vgpu_pf *pf);
void vgpu_pf_run_machine_stop(struct vgpu_pf *pf);
void vgpu_pf_run_machine_look(struct vgpu_pf *pf);
void vgpu_pf_run_machine_decide(struct vgpu_pf *pf);
void vgpu_pf_run_machine_switched(struct vgpu_pf *pf);
void vgpu_pf_run_machine_failed(struct vgpu_pf *pf, uint32_t culprit, enum vgpu_pf_reason reason);
void vgpu_pf_run_machine_watch(struct vgpu_pf *pf);
void vgpu_pf_run_machine_wake(struct vgpu_pf *pf);
void vgpu_pf_run_machine_idle(struct vgpu_pf *pf);
void vgpu_pf_run_machine_expired(struct vgpu_pf *pf);
void vgpu_pf_run_machine_slice_timer(struct vgpu_pf *pf);
void vgpu_pf_run_machine_evict(struct vgpu_pf *pf);
void vgpu_pf_run_machine_lost(struct vgpu_pf *pf);
void vgpu_pf_run_machine_recover(struct vgpu_pf *pf);
void vgpu_pf_run_machine_set_exclusive(struct vgpu_pf *pf, const struct vgpu_vf *vf);
uint32_t vgpu_pf_run_machine_exclusive(const struct vgpu_pf *pf);
bool vgpu_pf_run_machine_is_loaded(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_run_machine_holds(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_run_tables_set(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table);
void vgpu_pf_run_tables_get(const struct vgpu_pf *pf, struct vgpu_pf_run_table *table);
void vgpu_pf_run_tables_load(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table);
void vgpu_pf_run_machine_reset_vf(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* run/contract.c: reservations, caps and bands */
void vgpu_pf_run_contract_charge(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
				 uint64_t ran, uint64_t reserved);
uint64_t vgpu_pf_run_contract_capped_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* run/share.c: what each VF is owed for its weight */
int64_t vgpu_pf_run_share_lag(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* run/account.c: service received, from the device's own time stamps */
void vgpu_pf_run_account_start(struct vgpu_pf *pf);
void vgpu_pf_run_account_stop(struct vgpu_pf *pf);
void vgpu_pf_run_account_drain(struct vgpu_pf *pf);
void vgpu_pf_run_account_count_switch(struct vgpu_pf *pf, uint64_t duration_ns);
uint64_t vgpu_pf_run_account_percentile(const struct vgpu_pf *pf, uint32_t per_mille);

#ifdef __cplusplus
}
#endif

#endif
