// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What each kind of run means, as a table: everything that depends on the kind asks here. */
#include "pf-driver/core/run/internal.h"

static const struct vgpu_run_kind_row kinds[VGPU_RUN_KINDS] = {
	/*		      name	     cut    end    weight urgent grant */
	[VGPU_RUN_SLICE] = {"slice", true, true, true, false, true},
	[VGPU_RUN_SOLE] = {"sole", false, false, true, false, false},
	[VGPU_RUN_REST] = {"rest", false, false, false, false, false},
	[VGPU_RUN_RESCUE] = {"rescue", false, true, true, false, false},
	[VGPU_RUN_RESERVE] = {"reserve", false, true, true, true, true},
	[VGPU_RUN_CONTRACT] = {"contract", false, true, false, true, true},
};

/**
 * vgpu_pf_run_kind() - the row of a run's kind
 * @run: the run
 */
const struct vgpu_run_kind_row *vgpu_pf_run_kind(const struct vgpu_run *run)
{
	return &kinds[run->kind];
}

/**
 * vgpu_pf_run_kind_is_endless() - is there a VF, and no quantum whose end could be waited for?
 * @run: the run in the engine
 */
bool vgpu_pf_run_kind_is_endless(const struct vgpu_run *run)
{
	return run->vf && !kinds[run->kind].has_end;
}

/**
 * vgpu_pf_run_kind_allowed_ns() - how long a run may be before it counts as an overrun
 * @run: the run
 *
 * A VF that ran alone may finish a quantum that began when it did; the turn of one that waited too
 * long is not in the table, and never too long.
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
