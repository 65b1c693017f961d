// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Describes the scheduler's state: as text for a dump, and as a view for the simulator. */
#include "pf-driver/core/run/internal.h"

/*
 * Describe the scheduler for a bug report. bytes: size of `text`. Return: characters written,
 * without the NUL.
 */
uint32_t vgpu_pf_run_describe(struct vgpu_pf *pf, char *text, uint32_t bytes)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	const struct vgpu_run_indexed_table *table = vgpu_pf_run_tables_active(pf);
	const struct vgpu_run *run = &scheduler->run;
	struct vgpu_pf_info info;

	vgpu_pf_run_account_info(pf, &info);
	return vgpu_pf_text_format(
		text, bytes,
		"table: generation %llu, %u entries, cursor %u, pending %u\n"
		"scheduler: %s, in the engine VF%u (%s, decision %u: %s, granted %llu ns), next "
		"VF%u, busy 0x%04x, exclusive VF%u, mismatches %u\n"
		"switch: busy %u, %u -> %u, step %u of %u, status 0x%x\n"
		"switches %llu, p50 %llu ns, p99 %llu ns, max %llu ns\n",
		LLU(table->table.generation), table->table.count, scheduler->tables.cursors[0],
		scheduler->tables.is_pending, vgpu_pf_run_machine_state_name(scheduler->state),
		run->vf, vgpu_pf_run_kind(run)->name, run->decision,
		vgpu_pf_run_decide_name(run->decision), LLU(run->granted_ns), scheduler->next.vf,
		scheduler->work.busy, scheduler->exclusive_vf, scheduler->mismatches,
		pf->sw.is_busy, pf->sw.from, pf->sw.to, pf->sw.step, pf->sw.step_count,
		pf->sw.status, LLU(info.switches), LLU(info.switch_p50_ns), LLU(info.switch_p99_ns),
		LLU(info.switch_max_ns));
}

struct vgpu_pf_engine_view vgpu_pf_view_engine(const struct vgpu_pf *pf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_pf_engine_view view = {
		.is_switching = scheduler->state == VGPU_SCHEDULER_SWITCHING,
		.is_broken = scheduler->state == VGPU_SCHEDULER_BROKEN,
	};

	/* in this view, bit n is VF n */
	if (scheduler->run.kind == VGPU_RUN_CONTRACT)
		view.reserved |= 1u << scheduler->run.vf;
	if (scheduler->next.kind == VGPU_RUN_CONTRACT && scheduler->next.vf != scheduler->run.vf)
		view.reserved |= 1u << scheduler->next.vf;
	return view;
}
