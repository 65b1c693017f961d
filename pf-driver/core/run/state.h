/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by the files of the run table executor: machine.c (engine, failure), decide.c (who is
 * next), share.c (lags), contract.c (reservations, caps, bands), gang.c (gang slots),
 * account.c (what was used) and tables.c (the tables themselves). Nobody else includes it.
 */
#ifndef VGPU_CORE_RUN_TABLE_H
#define VGPU_CORE_RUN_TABLE_H

#include "pf-driver/core/run/parts.h"

#define QUANTUM_MIN_US	   100u
#define QUANTUM_MAX_US	   1000000u
#define QUANTUM_DEFAULT_US 6000u
#define QUANTUM_SOLE_US	   500000u
#define WEIGHT_MAX	   10000u
#define GAP_MIN_US	   1000u
#define SLICE_MIN_NS	   (QUANTUM_MIN_US * VGPU_NS_PER_US)

static inline bool vgpu_has_bit(uint32_t mask, uint32_t vf)
{
	return (mask >> (vf - 1)) & 1;
}

void vgpu_pf_run_tables_fallback(struct vgpu_pf *pf, struct vgpu_run_slots *slots);
struct vgpu_run_slots *vgpu_pf_run_tables_active(struct vgpu_pf *pf);
uint32_t vgpu_pf_run_decide_runnable(struct vgpu_pf *pf);
uint32_t vgpu_pf_run_decide_competing(struct vgpu_pf *pf);
void vgpu_pf_run_decide_start_cycle(struct vgpu_pf *pf);
uint64_t vgpu_pf_run_decide_quantum(struct vgpu_pf *pf, uint32_t vf);
void vgpu_pf_run_decide_set(struct vgpu_run *run, uint32_t vf, enum vgpu_run_kind kind,
			  uint64_t granted_ns, uint64_t quantum_ns);
bool vgpu_pf_run_decide_reserve(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
bool vgpu_pf_run_decide_urgent(struct vgpu_pf *pf, struct vgpu_run *run);
bool vgpu_pf_run_decide_next(struct vgpu_pf *pf, struct vgpu_run *run);

/* what is in the bucket of a cap that begins: a new core does not know what was used */
enum vgpu_bucket {
	VGPU_BUCKET_EMPTY = 0,
	VGPU_BUCKET_FULL,
};

bool vgpu_pf_run_contract_update(struct vgpu_pf *pf);
void vgpu_pf_run_contract_idle(struct vgpu_vf *vf);
uint32_t vgpu_pf_run_contract_held(struct vgpu_pf *pf);
uint32_t vgpu_pf_run_contract_strict(struct vgpu_pf *pf);
bool vgpu_pf_run_contract_has_cap(const struct vgpu_pf *pf, uint32_t vf);
uint32_t vgpu_pf_run_contract_before_band(struct vgpu_pf *pf, uint32_t mask, uint32_t band);
uint32_t vgpu_pf_run_contract_first_band(struct vgpu_pf *pf, uint32_t mask);
bool vgpu_pf_run_contract_pick(struct vgpu_pf *pf, uint32_t competing, struct vgpu_run *run);
void vgpu_pf_run_contract_limit(struct vgpu_pf *pf, struct vgpu_run *run);
void vgpu_pf_run_contract_arm(struct vgpu_pf *pf);
void vgpu_pf_run_contract_take(struct vgpu_pf *pf, enum vgpu_bucket bucket);
void vgpu_pf_run_contract_reset_vf(struct vgpu_vf *vf);

void vgpu_pf_run_share_log(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
			   uint64_t ns, bool has_work);
void vgpu_pf_run_share_update(struct vgpu_pf *pf);
void vgpu_pf_run_share_evict(struct vgpu_pf *pf);
void vgpu_pf_run_share_settle(struct vgpu_pf *pf);
bool vgpu_pf_run_share_is_far(struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_run_share_is_ahead(struct vgpu_pf *pf, struct vgpu_vf *vf, int64_t ns);
bool vgpu_pf_run_share_allows(struct vgpu_pf *pf, struct vgpu_vf *vf, int64_t ns);
uint32_t vgpu_pf_run_share_first(struct vgpu_pf *pf, uint32_t competing);
void vgpu_pf_run_share_take(struct vgpu_pf *pf);

bool vgpu_pf_run_gang_has(const struct vgpu_vf *vf);
bool vgpu_pf_run_gang_keeps(const struct vgpu_vf *vf);
uint64_t vgpu_pf_run_gang_next(const struct vgpu_vf *vf, uint64_t now);
void vgpu_pf_run_gang_update(struct vgpu_vf *vf, uint64_t now);
const struct vgpu_vf *vgpu_pf_run_gang_open(struct vgpu_pf *pf, uint32_t mask);
int vgpu_pf_run_gang_check(struct vgpu_pf *pf, const struct vgpu_pf_contract *terms, uint32_t vf);
int vgpu_pf_run_gang_check_all(struct vgpu_pf *pf, const struct vgpu_pf_contract *contracts);
int vgpu_pf_run_contract_check(struct vgpu_pf *pf, const struct vgpu_pf_contract *contracts);

#endif
