// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Carries out the policies that are written to sysfs. While a client holds the lease, weights and
 * quanta become events for the lease holder, and all other writes fail with EBUSY. plan.c plans the
 * shares of the engine.
 *
 * VRAM: writing vram_quota provisions or releases a VF. numvfs provisions its VFs in equal parts if
 * none has resources, and releases exactly these again: the generation of each grant is kept, so
 * that a VF that was released and provisioned again is left alone. This file also confirms the
 * releases that it began (confirms_scrub), because without vgpud no record goes to disk before
 * SCRUB_DURABLE. A client that requested a release confirms it itself.
 *
 * Writers run under home->admin. Each step takes home->lock.
 */
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/linux/home.h"

#define QUANTUM_MAX_MS (VGPU_PF_QUANTUM_MAX_US / USEC_PER_MSEC)
/* time limit for the release and the scrub of one VF; a device needs far less */
#define RELEASE_TIMEOUT_S 60u

void vgpu_policy_init(struct vgpu_home *home)
{
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++)
		home->policies.vfs[i] =
			(struct vgpu_policy){.weight = VGPU_WEIGHT_DEFAULT, .max_pct = 100};
}

/* ---- VRAM ---- */

/* resources that are not being released */
static bool has_resources(const struct vgpu_pf_vf_view *view)
{
	return view->state != VGPU_PF_VF_ABSENT && view->state != VGPU_PF_VF_SCRUBBING;
}

/* VRAM of a VF in bytes; 0: none. */
u64 vgpu_policy_quota(struct vgpu_home *home, u32 vf)
{
	struct vgpu_pf_vf_view view = vgpu_home_view(home, vf);

	return has_resources(&view) ? view.vram_bytes : 0;
}

/* The time in which a VF must leave the engine, in us; 0: default. */
u32 vgpu_policy_preempt_timeout(struct vgpu_home *home, u32 vf)
{
	struct vgpu_pf_vf_view view = vgpu_home_view(home, vf);

	return view.is_provisioned ? view.preempt_timeout_us
				   : READ_ONCE(home->policies.vfs[vf].preempt_timeout_us);
}

/* The weight of a VF in the lease holder's run table; without a lease, that of sysfs. */
u32 vgpu_policy_weight(struct vgpu_home *home, u32 vf)
{
	u32 weight;

	vgpu_home_lock(home);
	weight = vgpu_pf_view_is_leased(home->pf) ? vgpu_pf_weight_of(home->pf, vf) : 0;
	weight = weight ?: home->policies.vfs[vf].weight;
	vgpu_home_unlock(home);
	return weight;
}

/*
 * Length of a VF's turns in the lease holder's run table, in ms, rounded up; without a lease, that
 * of sysfs, where 0 is the default.
 */
u32 vgpu_policy_quantum_ms(struct vgpu_home *home, u32 vf)
{
	u32 quantum_us, quantum_ms;

	vgpu_home_lock(home);
	quantum_us = vgpu_pf_view_is_leased(home->pf) ? vgpu_pf_quantum_of(home->pf, vf) : 0;
	quantum_ms = quantum_us ? DIV_ROUND_UP(quantum_us, (u32)USEC_PER_MSEC)
				: home->policies.vfs[vf].exec_quantum_ms;
	vgpu_home_unlock(home);
	return quantum_ms;
}

/* generation: 0: any */
static int start_release(struct vgpu_home *home, u32 vf, u32 generation)
{
	struct vgpu_pf_vf_ref ref = {.size = sizeof(ref), .vf = vf, .generation = generation};
	enum vgpu_pf_vf_state state;
	int error;

	vgpu_home_lock(home);
	state = vgpu_pf_view_vf(home->pf, vf).state;
	home->vfs[vf].confirms_scrub = state != VGPU_PF_VF_ABSENT;
	vgpu_home_unlock(home);
	if (state == VGPU_PF_VF_ABSENT || state == VGPU_PF_VF_SCRUBBING)
		return 0;
	error = vgpu_home_request(home, VGPU_PF_OP_RELEASE, &ref);
	/* the release of a writer that was killed continues, and this home must confirm it */
	if (error && error != -EINTR) {
		vgpu_home_lock(home);
		home->vfs[vf].confirms_scrub = false;
		vgpu_home_unlock(home);
	}
	return error;
}

static bool is_absent(const struct vgpu_home *home, u32 vf)
{
	return READ_ONCE(home->vfs[vf].seen.state) == VGPU_PF_VF_ABSENT;
}

static bool is_device_away(const struct vgpu_home *home)
{
	return READ_ONCE(home->is_gone) || READ_ONCE(home->is_device_lost);
}

/* without the device nothing proceeds; the rest is done when it is back */
static int wait_absent(struct vgpu_home *home, u32 vf)
{
	long left = wait_event_killable_timeout(home->state_wait,
						is_absent(home, vf) || is_device_away(home),
						(long)msecs_to_jiffies(RELEASE_TIMEOUT_S * 1000));

	if (is_absent(home, vf))
		return 0;
	return left > 0 ? -ENODEV : left == 0 ? -ETIMEDOUT : -EINTR;
}

static int release(struct vgpu_home *home, u32 vf)
{
	int error = start_release(home, vf, 0);

	return error ? error : wait_absent(home, vf);
}

/* generation: receives the grant's */
static int provision(struct vgpu_home *home, u32 vf, u64 bytes, u32 *generation)
{
	struct vgpu_pf_provision request = {
		.size = sizeof(request),
		.vf = vf,
		.vram_bytes = bytes,
		.preempt_timeout_us = home->policies.vfs[vf].preempt_timeout_us,
	};
	int error = vgpu_home_request(home, VGPU_PF_OP_PROVISION, &request);

	*generation = request.generation;
	return error;
}

/* under the core's lock */
static bool is_held(const struct vgpu_home *home, u32 vf)
{
	const struct vgpu_home_vf *node = &home->vfs[vf];

	return node->is_open || node->has_client || vgpu_pf_view_vf(home->pf, vf).has_driver;
}

/* Whether the VF's resources are in use. */
bool vgpu_policy_is_in_use(struct vgpu_home *home, u32 vf)
{
	bool is_used;

	vgpu_home_lock(home);
	is_used = is_held(home, vf);
	vgpu_home_unlock(home);
	return is_used || vgpu_sriov_is_busy(home, vf);
}

/*
 * Keep the VF's node from being opened, before a release. Return: 0; then vgpu_policy_reopen() must
 * follow; -EBUSY if the VF is in use.
 */
int vgpu_policy_close(struct vgpu_home *home, u32 vf)
{
	bool is_closed;

	vgpu_home_lock(home);
	is_closed = !is_held(home, vf);
	home->vfs[vf].is_closed = is_closed;
	vgpu_home_unlock(home);
	if (is_closed && !vgpu_sriov_is_busy(home, vf))
		return 0;
	vgpu_policy_reopen(home, vf);
	return -EBUSY;
}

void vgpu_policy_reopen(struct vgpu_home *home, u32 vf)
{
	vgpu_home_lock(home);
	home->vfs[vf].is_closed = false;
	vgpu_home_unlock(home);
}

static int change_quota(struct vgpu_home *home, u32 vf, u64 before, u64 bytes)
{
	u32 generation;
	int error = release(home, vf);

	if (!error && bytes)
		error = provision(home, vf, bytes, &generation);
	/* the previous size, if it is available */
	if (error && bytes && before)
		provision(home, vf, before, &generation);
	return error;
}

static int set_quota(struct vgpu_home *home, u32 vf, u64 bytes)
{
	u64 before = vgpu_policy_quota(home, vf);
	int error;

	bytes = round_up(bytes, VGPU_VRAM_UNIT_BYTES);
	if (bytes == before && bytes)
		return 0;
	error = vgpu_policy_close(home, vf);
	if (error)
		return error;
	error = change_quota(home, vf, before, bytes);
	vgpu_policy_reopen(home, vf);
	return error;
}

static bool is_anything_provisioned(struct vgpu_home *home)
{
	for (u32 i = 1; i <= home->total_vfs; i++)
		if (vgpu_policy_quota(home, i))
			return true;
	return false;
}

/* depends only on device and count, so that the result is always the same */
static u64 fair_bytes(const struct vgpu_home *home, u32 count)
{
	const struct vgpu_pf_device *device = vgpu_pf_view_device(home->pf);
	u64 share = (device->vram_bytes - VGPU_VRAM_UNIT_BYTES) / count;

	if (share < VGPU_VRAM_UNIT_BYTES)
		return 0;
	return min_t(u64, rounddown_pow_of_two(share), device->aperture_bytes);
}

/*
 * Provision VFs 1 to count, which will be enabled, with equal parts of VRAM. Does nothing if a VF
 * has resources already or a client holds the lease. If the device is too small for so many equal
 * parts, the VFs are enabled without resources.
 */
int vgpu_policy_provision_fair(struct vgpu_home *home, u32 count)
{
	u64 bytes = fair_bytes(home, count);
	int error = 0;

	vgpu_policy_release_left(home);
	if (vgpu_pf_view_is_leased(home->pf) || is_anything_provisioned(home))
		return 0;
	if (bytes == 0) {
		dev_warn(&home->pdev->dev, "%u VFs are too many for equal parts of %llu MiB\n",
			 count, vgpu_pf_view_device(home->pf)->vram_bytes >> 20);
		return 0;
	}
	for (u32 i = 1; !error && i <= count; i++) {
		u32 generation = 0;

		error = release(home, i);
		if (!error && fatal_signal_pending(current))
			error = -EINTR;
		if (!error)
			error = provision(home, i, bytes, &generation);
		home->vfs[i].auto_generation = error ? 0 : generation;
	}
	if (error)
		vgpu_policy_release_auto(home);
	return error;
}

/* whether the VF still has the grant of numvfs, and not a later one */
static bool is_auto(struct vgpu_home *home, u32 vf, u32 generation)
{
	struct vgpu_pf_vf_view view = vgpu_home_view(home, vf);

	return view.generation == generation && has_resources(&view);
}

/* returns true if the release has begun */
static bool start_auto_release(struct vgpu_home *home, u32 vf)
{
	u32 generation = home->vfs[vf].auto_generation;
	bool is_given = generation && is_auto(home, vf, generation);

	if (is_given && start_release(home, vf, generation)) {
		/* released later: the device may be away */
		dev_err(&home->pdev->dev, "VF%u: was not released\n", vf);
		return false;
	}
	home->vfs[vf].auto_generation = 0;
	return is_given;
}

/* Release the VFs that numvfs provisioned; vgpu_policy_release_left() retries after a failure. */
void vgpu_policy_release_auto(struct vgpu_home *home)
{
	u32 started = 0;

	for (u32 i = 1; i <= home->total_vfs; i++)
		started |= start_auto_release(home, i) ? BIT(i) : 0;
	for (u32 i = 1; i <= home->total_vfs; i++)
		if (started & BIT(i))
			wait_absent(home, i);
}

/*
 * Release, without waiting, the VFs that could not be released with the functions. A VF that is in
 * use again keeps its resources until the functions come and go again.
 */
void vgpu_policy_release_left(struct vgpu_home *home)
{
	if (pci_num_vf(home->pdev) || READ_ONCE(home->is_device_lost) ||
	    READ_ONCE(home->is_device_parked) || vgpu_pf_view_is_leased(home->pf))
		return;
	for (u32 i = 1; i <= home->total_vfs; i++) {
		if (home->vfs[i].auto_generation == 0 || vgpu_policy_close(home, i))
			continue;
		start_auto_release(home, i);
		vgpu_policy_reopen(home, i);
	}
}

/* ---- writes ---- */

static int set_preempt_timeout(struct vgpu_home *home, u32 vf, u64 value)
{
	int error = 0;

	vgpu_home_lock(home);
	if (!home->is_gone && vgpu_pf_view_vf(home->pf, vf).is_provisioned)
		error = vgpu_pf_set_preempt_timeout(home->pf, vf, (u32)value);
	vgpu_home_unlock(home);
	if (!error)
		home->policies.vfs[vf].preempt_timeout_us = (u32)value;
	return error;
}

/* a VF that is not HIGH has the common mode of all VFs, LOW or NORMAL, which is_strict selects */
static int set_priority(struct vgpu_home *home, u32 vf, u64 value)
{
	home->policies.vfs[vf].priority =
		value == VGPU_PRIORITY_HIGH ? VGPU_PRIORITY_HIGH : VGPU_PRIORITY_LOW;
	return 0;
}

static u32 sum_of_floors(const struct vgpu_home *home, u32 except)
{
	u32 sum = 0;

	for (u32 i = 1; i <= home->total_vfs; i++)
		sum += i == except ? 0 : home->policies.vfs[i].min_pct;
	return sum;
}

static int set_min_pct(struct vgpu_home *home, u32 vf, u64 value)
{
	struct vgpu_policy *policy = &home->policies.vfs[vf];

	if (value > policy->max_pct)
		return -EINVAL;
	if (sum_of_floors(home, vf) + value > 100)
		return -ENOSPC;
	policy->min_pct = (u32)value;
	return 0;
}

static int set_max_pct(struct vgpu_home *home, u32 vf, u64 value)
{
	struct vgpu_policy *policy = &home->policies.vfs[vf];

	if (value < policy->min_pct)
		return -EINVAL;
	policy->max_pct = (u32)value;
	return 0;
}

static int set_weight(struct vgpu_home *home, u32 vf, u64 value)
{
	home->policies.vfs[vf].weight = (u32)value;
	return 0;
}

static int set_quantum(struct vgpu_home *home, u32 vf, u64 value)
{
	home->policies.vfs[vf].exec_quantum_ms = (u32)value;
	return 0;
}

struct policy_row {
	u64 least, most;
	int (*set)(struct vgpu_home *home, u32 vf, u64 value);
	bool is_of_table; /* the run table is planned again */
	bool is_told; /* a lease holder gets an event; false: EBUSY while a client has the lease */
};

static const struct policy_row rows[] = {
	[VGPU_PF_POLICY_EXEC_QUANTUM_MS] = {0, QUANTUM_MAX_MS, set_quantum, true, true},
	[VGPU_PF_POLICY_PREEMPT_TIMEOUT_US] = {0, VGPU_PF_PREEMPT_TIMEOUT_MAX_US,
					       set_preempt_timeout, false, false},
	[VGPU_PF_POLICY_SCHED_PRIORITY] = {0, VGPU_PRIORITY_HIGH, set_priority, true, false},
	[VGPU_PF_POLICY_VRAM_QUOTA] = {0, U64_MAX - VGPU_VRAM_UNIT_BYTES, set_quota, false, false},
	[VGPU_PF_POLICY_WEIGHT] = {1, VGPU_PF_WEIGHT_MAX, set_weight, true, true},
	[VGPU_PF_POLICY_MIN_PCT] = {0, 100, set_min_pct, true, false},
	[VGPU_PF_POLICY_MAX_PCT] = {1, 100, set_max_pct, true, false},
};

/*
 * The priority that cannot be written. Either all VFs keep their turns while they are idle (NORMAL)
 * or none does (LOW), so one VF cannot change between the two. Not all VFs can be HIGH.
 */
static enum vgpu_priority refused_priority(const struct vgpu_home *home, u32 vf)
{
	if (vf == VGPU_ALL_VFS)
		return VGPU_PRIORITY_HIGH;
	return home->policies.is_strict ? VGPU_PRIORITY_LOW : VGPU_PRIORITY_NORMAL;
}

static int check(const struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	if (value < rows[policy].least || value > rows[policy].most)
		return -EINVAL;
	if (policy != VGPU_PF_POLICY_SCHED_PRIORITY || value != refused_priority(home, vf))
		return 0;
	return -EPERM;
}

/* returns true if a lease holder decides; error: receives the result for the writer */
static bool tell_lease_holder(struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value,
			      int *error)
{
	bool is_leased;

	vgpu_home_lock(home);
	is_leased = vgpu_pf_view_is_leased(home->pf) && !home->is_gone;
	*error = is_leased && !rows[policy].is_told ? -EBUSY : 0;
	if (is_leased && !*error)
		vgpu_pf_report_policy(home->pf, vf == VGPU_ALL_VFS ? 0 : vf, policy, value);
	vgpu_home_unlock(home);
	return is_leased;
}

static int set_all(struct vgpu_home *home, const struct policy_row *row, enum vgpu_pf_policy policy,
		   u64 value)
{
	int error = 0;

	if (policy == VGPU_PF_POLICY_SCHED_PRIORITY)
		home->policies.is_strict = value == VGPU_PRIORITY_NORMAL;
	for (u32 i = 1; !error && i <= home->total_vfs; i++)
		error = row->set(home, i, value);
	return error;
}

static int set(struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	const struct policy_row *row = &rows[policy];

	return vf == VGPU_ALL_VFS ? set_all(home, row, policy, value) : row->set(home, vf, value);
}

static int set_and_plan(struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	/* until a plan is in force, the files show the earlier values */
	struct vgpu_policies before = home->policies;
	int error = set(home, vf, policy, value);

	if (!error)
		error = vgpu_plan_table(home);
	if (error)
		home->policies = before;
	return error;
}

/*
 * sysfs received a policy of a VF or VGPU_ALL_VFS, in the unit of the file; home->admin is held.
 * Return: 0, or a negative errno for write(2).
 */
int vgpu_policy_write(struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	int error = check(home, vf, policy, value);

	if (error)
		return error;
	if (tell_lease_holder(home, vf, policy, value, &error))
		return error;
	return rows[policy].is_of_table ? set_and_plan(home, vf, policy, value)
					: set(home, vf, policy, value);
}
