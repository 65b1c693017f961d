// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Properties of each kind of run (a period of a VF in the engine), as a table, so that other files
 * rarely branch on the kind.
 */
#include "pf-driver/core/run/internal.h"

static const struct vgpu_run_kind_row kinds[VGPU_RUN_KINDS] = {
	/* name, may_be_cut, has_end, is_by_weight, is_urgent, has_grant */
	[VGPU_RUN_SLICE] = {"slice", true, true, true, false, true},
	[VGPU_RUN_UNCONTENDED] = {"uncontended", false, false, true, false, false},
	[VGPU_RUN_IDLE_RESIDENT] = {"idle-resident", false, false, false, false, false},
	[VGPU_RUN_BOOST] = {"boost", false, true, true, false, false},
	[VGPU_RUN_RESERVE] = {"reserve", false, true, true, true, true},
	[VGPU_RUN_CONTRACT] = {"contract", false, true, false, true, true},
};

/* Get the properties of a run's kind. Return: the row of the table. */
const struct vgpu_run_kind_row *vgpu_pf_run_kind(const struct vgpu_run *run)
{
	return &kinds[run->kind];
}

/*
 * Return: true if the run is endless: it has a VF, which may stay until another VF waits. An
 * uncontended run counts as endless, because another long quantum follows each long quantum.
 */
bool vgpu_pf_run_kind_is_endless(const struct vgpu_run *run)
{
	return run->vf && !kinds[run->kind].has_end;
}

/*
 * Compute the duration after which a run overruns. A run of a kind with has_grant may last for
 * granted_ns. If another VF waits, an endless run may last for one quantum, or until the wait
 * began, whichever is later. A boost has no limit. Return: ns; UINT64_MAX: no limit.
 */
uint64_t vgpu_pf_run_kind_allowed_ns(const struct vgpu_run *run)
{
	const struct vgpu_run_kind_row *kind = &kinds[run->kind];

	if (kind->has_grant)
		return run->granted_ns;
	if (kind->has_end || run->contended_ns == 0)
		return UINT64_MAX;
	return vgpu_max_u64(run->quantum_ns, run->contended_ns - run->started_ns);
}
