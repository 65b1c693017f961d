// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plans the run table while no client (vgpud) has the lease. Planning starts with the first write
 * of a scheduling policy to sysfs.
 *
 * Each VF gets one entry. The VFs with resources divide one cycle of the table in proportion to
 * quantum * weight, within min_pct (floor) and max_pct (cap) of each VF. The planned cycle lasts at
 * most max_gap_ms (0: no limit), so that no VF is off the engine for longer. But no slice is
 * shorter than SHORTEST_US; this minimum, alone or together with the floors, can make the cycle
 * longer. When VFs get or lose resources, this file plans again.
 *
 * Weights and floors hold while all VFs have work. Caps become terms of contracts, which always
 * hold; only a VF with gang slots gets no cap. Other terms that a former lease holder has set stay
 * in force.
 */
#include <linux/slab.h>

#include "pf-driver/linux/platform.h"

#define SHORTEST_US 500u /* shortest slice; world switches would take most of a shorter one */
#define PPM_OF_PCT  (VGPU_SHARE_FULL_PPM / 100) /* one percent in ppm */

/* the slice that the VF's files in sysfs request: the quantum times the weight */
static u64 requested_us(const struct vgpu_policy *policy)
{
	u64 quantum_us = policy->exec_quantum_ms ? (u64)policy->exec_quantum_ms * USEC_PER_MSEC
						 : VGPU_PF_QUANTUM_DEFAULT_US;

	return quantum_us * policy->weight / VGPU_WEIGHT_DEFAULT;
}

/* returns the VFs with resources: bit n for VF n */
static u32 sharing_vfs(const struct vgpu_platform *platform)
{
	u32 mask = 0;

	for (u32 i = 1; i <= platform->total_vfs; i++) {
		enum vgpu_pf_vf_state state = READ_ONCE(platform->vfs[i].seen.state);

		if (state != VGPU_PF_VF_ABSENT && state != VGPU_PF_VF_SCRUBBING)
			mask |= BIT(i);
	}
	return mask;
}

struct vgpu_plan {
	u32 vfs; /* VFs with resources: bit n for VF n */
	u64 cycle_us;
	u32 ppm[VGPU_PF_MAX_VFS + 1]; /* part of the cycle, by VF number */
};

/* length of a cycle: sum of the requested slices, at least SHORTEST_US, at most max_gap_ms */
static u64 cycle_of(const struct vgpu_platform *platform, u32 vfs)
{
	u64 max_us = (u64)vgpu_pf_view_max_gap(platform->pf) * USEC_PER_MSEC;
	u64 cycle_us = 0;

	for (u32 i = 1; i <= platform->total_vfs; i++)
		cycle_us += vfs & BIT(i) ? requested_us(&platform->policies.vfs[i]) : 0;
	cycle_us = max_t(u64, cycle_us, SHORTEST_US);
	return max_us ? min(cycle_us, max_us) : cycle_us;
}

/* the floor of a VF's part: the larger one of min_pct and the shortest slice */
static u32 min_ppm(const struct vgpu_policy *policy, u64 cycle_us)
{
	u64 shortest = DIV_ROUND_UP_ULL((u64)SHORTEST_US * VGPU_SHARE_FULL_PPM, cycle_us);

	return (u32)max_t(u64, policy->min_pct * PPM_OF_PCT, min_t(u64, shortest, U32_MAX));
}

static void make_plan(const struct vgpu_platform *platform, struct vgpu_plan *plan)
{
	struct vgpu_share shares[VGPU_PF_MAX_VFS] = {};
	u32 count = 0;

	plan->vfs = sharing_vfs(platform);
	plan->cycle_us = cycle_of(platform, plan->vfs);
	for (u32 i = 1; i <= platform->total_vfs; i++)
		if (plan->vfs & BIT(i)) {
			const struct vgpu_policy *policy = &platform->policies.vfs[i];

			shares[count++] = (struct vgpu_share){
				.weight = requested_us(policy),
				.min_ppm = min_ppm(policy, plan->cycle_us),
				.max_ppm = policy->max_pct * PPM_OF_PCT,
			};
		}
	vgpu_pf_share_divide(shares, count);
	count = 0;
	for (u32 i = 1; i <= platform->total_vfs; i++)
		plan->ppm[i] = plan->vfs & BIT(i) ? shares[count++].ppm : 0;
}

static u32 quantum_us(const struct vgpu_platform *platform, const struct vgpu_plan *plan, u32 vf)
{
	u64 quantum = requested_us(&platform->policies.vfs[vf]);

	if (plan->vfs & BIT(vf))
		quantum =
			DIV_ROUND_CLOSEST_ULL(plan->cycle_us * plan->ppm[vf], VGPU_SHARE_FULL_PPM);
	return (u32)clamp_t(u64, quantum, SHORTEST_US, VGPU_PF_QUANTUM_MAX_US);
}

/*
 * Updates the cap in a VF's contract, and keeps the other terms, which a former lease holder may
 * have set. Removes only a cap that this file has set. Sets a cap if max_pct is below 100 and the
 * VF has no gang slots. The core requires burst_ns >= budget_ns + VGPU_PF_CONTRACT_MIN_NS.
 */
static void fill_contract(struct vgpu_policy *policy, u32 quantum,
			  struct vgpu_pf_contract *contract)
{
	bool is_own_cap = policy->cap_ppm && contract->rate_ppm == policy->cap_ppm;

	if (is_own_cap) {
		contract->rate_ppm = 0;
		contract->burst_ns = 0;
	}
	policy->cap_ppm = 0;
	if (policy->max_pct == 100 || contract->flags & VGPU_PF_CONTRACT_GANG)
		return;
	policy->cap_ppm = policy->max_pct * PPM_OF_PCT;
	contract->rate_ppm = policy->cap_ppm;
	contract->burst_ns = max_t(u64, (u64)quantum * NSEC_PER_USEC,
				   contract->budget_ns + VGPU_PF_CONTRACT_MIN_NS);
}

/* table: in: the contracts of the newest table; out: the plan */
static void fill_table(struct vgpu_platform *platform, const struct vgpu_plan *plan,
		       struct vgpu_pf_run_table *table)
{
	for (u32 i = 1; i <= platform->total_vfs; i++) {
		struct vgpu_policy *policy = &platform->policies.vfs[i];
		struct vgpu_pf_run_entry entry = {.vf = i,
						  .quantum_us = quantum_us(platform, plan, i)};

		table->entries[table->count++] = entry;
		if (policy->priority == VGPU_PRIORITY_HIGH)
			table->reserve[table->reserve_count++] = entry;
		fill_contract(policy, entry.quantum_us, &table->contracts[i - 1]);
	}
	table->flags = platform->policies.is_strict ? VGPU_PF_TABLE_STRICT : 0;
}

/* table: an array of two; the first receives the plan, the second has the newest table */
static int set_plan(struct vgpu_platform *platform, struct vgpu_pf_run_table *table)
{
	struct vgpu_plan plan = {};
	int error;

	make_plan(platform, &plan);
	table->size = sizeof(*table);
	table->generation = table[1].generation + 1;
	memcpy(table->contracts, table[1].contracts, sizeof(table->contracts));
	fill_table(platform, &plan, table);
	error = vgpu_platform_request(platform, VGPU_PF_OP_SET_RUN_TABLE, table);
	if (error)
		return error;
	platform->plan.generation = table->generation;
	platform->plan.vfs = plan.vfs;
	platform->plan.is_due = false;
	return 0;
}

/*
 * Replaces the newest run table if its generation is `known`; known 0: any generation. A table of
 * another generation stays, and this file stops planning (plan.generation 0).
 */
static int replace_table(struct vgpu_platform *platform, u64 known)
{
	struct vgpu_pf_run_table *table = kvzalloc(2 * sizeof(*table), GFP_KERNEL);
	int error;

	if (!table)
		return -ENOMEM;
	error = vgpu_platform_request(platform, VGPU_PF_OP_GET_RUN_TABLE, &table[1]);
	if (!error && known && table[1].generation != known)
		platform->plan.generation = 0;
	else if (!error)
		error = set_plan(platform, table);
	kvfree(table);
	return error;
}

/*
 * Plan the run table now, and from now on after each change of the plan's input, until a client
 * sets another table. platform->admin is held; no client has the lease. Return: 0 or a negative
 * errno.
 */
int vgpu_plan_table(struct vgpu_platform *platform)
{
	return replace_table(platform, 0);
}

/*
 * Plans the table again after a change of the plan's input. While a client holds the lease, only
 * marks the plan as due. A table that this file has not set stays, also after the end of the lease.
 */
static int remake_plan(struct vgpu_platform *platform)
{
	if (platform->plan.generation == 0)
		return 0;
	/* when the lease ends, the deferred work (pci.c) runs again */
	if (vgpu_pf_view_is_leased(platform->pf)) {
		platform->plan.is_due = true;
		return 0;
	}
	return replace_table(platform, platform->plan.generation);
}

static void set_max_gap(struct vgpu_platform *platform, u32 max_gap_ms)
{
	vgpu_platform_lock(platform);
	if (!platform->is_gone)
		vgpu_pf_set_max_gap(platform->pf, max_gap_ms);
	vgpu_platform_unlock(platform);
}

/*
 * Limit how long a VF with work is off the engine, with any run table; 0: no limit. platform->admin
 * is held. Return: 0, or a negative errno for write(2); then the limit is unchanged.
 */
int vgpu_plan_set_max_gap(struct vgpu_platform *platform, u64 max_gap_ms)
{
	u32 before = vgpu_pf_view_max_gap(platform->pf);
	int error;

	if (max_gap_ms > VGPU_MAX_GAP_MAX_MS)
		return -EINVAL;
	set_max_gap(platform, (u32)max_gap_ms);
	error = remake_plan(platform);
	if (error)
		set_max_gap(platform, before);
	return error;
}

/*
 * Plan again if VFs got or lost resources, or if a lease that delayed a plan has ended.
 * platform->admin is held.
 */
void vgpu_plan_update(struct vgpu_platform *platform)
{
	bool is_due = platform->plan.is_due || platform->plan.vfs != sharing_vfs(platform);

	/* when the device is back, the deferred work runs again */
	if (is_due && !READ_ONCE(platform->is_device_lost) &&
	    !READ_ONCE(platform->is_device_suspended))
		remake_plan(platform);
}
