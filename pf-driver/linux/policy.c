// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Carries out the policies that are written to sysfs. While a client holds the lease, weights and
 * quanta become events for the lease holder, and writes of other policies fail with EBUSY. plan.c
 * plans the shares of the engine.
 *
 * VRAM: writing vram_quota provisions or releases a VF. A write of N to sriov_numvfs provisions VFs
 * 1 to N with equal parts of VRAM, unless a VF has resources, a client holds the lease, or the
 * parts would be too small. A write of 0 releases only these VFs again: this file records the
 * generation of their resources, and a VF keeps resources of another generation. service_thread.c
 * sends SCRUB_DURABLE for the releases that this file has begun or waits for (confirms_scrub),
 * because no client records these releases on disk. For all other releases, the client that
 * requested them sends SCRUB_DURABLE.
 *
 * Writers run under platform->admin. Each step takes platform->lock.
 */
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/linux/platform.h"

#define QUANTUM_MAX_MS (VGPU_PF_QUANTUM_MAX_US / USEC_PER_MSEC)
/* time limit for the release and the scrub of one VF; a device needs far less */
#define RELEASE_TIMEOUT_S 60u

void vgpu_policy_init(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++)
		platform->policies.vfs[i] =
			(struct vgpu_policy){.weight = VGPU_WEIGHT_DEFAULT, .max_pct = 100};
}

/* ---- VRAM ---- */

/* true if the VF has resources that are not being released */
static bool has_resources(const struct vgpu_pf_vf_view *view)
{
	return view->state != VGPU_PF_VF_ABSENT && view->state != VGPU_PF_VF_SCRUBBING;
}

/* Get the VRAM of a VF. Return: bytes; 0: none. */
u64 vgpu_policy_quota(struct vgpu_platform *platform, u32 vf)
{
	struct vgpu_pf_vf_view view = vgpu_platform_view(platform, vf);

	return has_resources(&view) ? view.vram_bytes : 0;
}

/* Get the time in which a VF must leave the engine. Return: us; 0: default (100 ms). */
u32 vgpu_policy_preempt_timeout(struct vgpu_platform *platform, u32 vf)
{
	struct vgpu_pf_vf_view view = vgpu_platform_view(platform, vf);

	return view.is_provisioned ? view.preempt_timeout_us
				   : READ_ONCE(platform->policies.vfs[vf].preempt_timeout_us);
}

/*
 * Get a VF's weight: in the newest run table if a client holds the lease and the table has a weight
 * for the VF, else in the VF's policy.
 */
u32 vgpu_policy_weight(struct vgpu_platform *platform, u32 vf)
{
	u32 weight;

	vgpu_platform_lock(platform);
	weight = vgpu_pf_view_is_leased(platform->pf) ? vgpu_pf_weight_of(platform->pf, vf) : 0;
	weight = weight ?: platform->policies.vfs[vf].weight;
	vgpu_platform_unlock(platform);
	return weight;
}

/*
 * Get a VF's quantum in ms: in the newest run table, rounded up, if a client holds the lease and
 * the table has an entry for the VF, else in the VF's policy. Return: ms; 0: default (6 ms).
 */
u32 vgpu_policy_quantum_ms(struct vgpu_platform *platform, u32 vf)
{
	u32 quantum_us, quantum_ms;

	vgpu_platform_lock(platform);
	quantum_us =
		vgpu_pf_view_is_leased(platform->pf) ? vgpu_pf_quantum_of(platform->pf, vf) : 0;
	quantum_ms = quantum_us ? DIV_ROUND_UP(quantum_us, (u32)USEC_PER_MSEC)
				: platform->policies.vfs[vf].exec_quantum_ms;
	vgpu_platform_unlock(platform);
	return quantum_ms;
}

/*
 * Begins to release a VF if its resources have this generation (else -ESTALE); 0: any generation.
 * Returns 0 also if the VF has no resources or is being released already.
 */
static int start_release(struct vgpu_platform *platform, u32 vf, u32 generation)
{
	struct vgpu_pf_vf_ref ref = {.size = sizeof(ref), .vf = vf, .generation = generation};
	enum vgpu_pf_vf_state state;
	int error;

	vgpu_platform_lock(platform);
	state = vgpu_pf_view_vf(platform->pf, vf).state;
	platform->vfs[vf].confirms_scrub = state != VGPU_PF_VF_ABSENT;
	vgpu_platform_unlock(platform);
	if (state == VGPU_PF_VF_ABSENT || state == VGPU_PF_VF_SCRUBBING)
		return 0;
	error = vgpu_platform_request(platform, VGPU_PF_OP_RELEASE, &ref);
	/* if the writer was killed, the release continues, and this platform confirms its scrub */
	if (error && error != -EINTR) {
		vgpu_platform_lock(platform);
		platform->vfs[vf].confirms_scrub = false;
		vgpu_platform_unlock(platform);
	}
	return error;
}

static bool is_absent(const struct vgpu_platform *platform, u32 vf)
{
	return READ_ONCE(platform->vfs[vf].seen.state) == VGPU_PF_VF_ABSENT;
}

static bool is_device_unavailable(const struct vgpu_platform *platform)
{
	return READ_ONCE(platform->is_gone) || READ_ONCE(platform->is_device_lost);
}

/*
 * Waits for the end of a release. Returns 0; -ENODEV if the device is lost (the release then
 * continues when the device is back) or the driver is unbound; -ETIMEDOUT after the time limit; or
 * -EINTR if the caller is killed. After -ETIMEDOUT, this platform no longer confirms the scrub: a
 * client may release the VF again and record that release on disk.
 */
static int wait_until_absent(struct vgpu_platform *platform, u32 vf)
{
	long left = wait_event_killable_timeout(
		platform->state_wait, is_absent(platform, vf) || is_device_unavailable(platform),
		(long)msecs_to_jiffies(RELEASE_TIMEOUT_S * 1000));

	if (is_absent(platform, vf))
		return 0;
	if (left)
		return left > 0 ? -ENODEV : -EINTR;
	vgpu_platform_lock(platform);
	platform->vfs[vf].confirms_scrub = false;
	vgpu_platform_unlock(platform);
	return -ETIMEDOUT;
}

static int release(struct vgpu_platform *platform, u32 vf)
{
	int error = start_release(platform, vf, 0);

	return error ? error : wait_until_absent(platform, vf);
}

/* provisions a VF; generation: receives the generation of the new resources */
static int provision(struct vgpu_platform *platform, u32 vf, u64 bytes, u32 *generation)
{
	struct vgpu_pf_provision request = {
		.size = sizeof(request),
		.vf = vf,
		.vram_bytes = bytes,
		.preempt_timeout_us = platform->policies.vfs[vf].preempt_timeout_us,
	};
	int error = vgpu_platform_request(platform, VGPU_PF_OP_PROVISION, &request);

	*generation = request.generation;
	return error;
}

/* true if a process, a client or a guest's driver uses the VF; platform->lock is held */
static bool has_user(const struct vgpu_platform *platform, u32 vf)
{
	const struct vgpu_platform_vf *node = &platform->vfs[vf];

	return node->is_open || node->has_client || vgpu_pf_view_vf(platform->pf, vf).has_driver;
}

/* Return: true if the VF's resources are in use. */
bool vgpu_policy_is_in_use(struct vgpu_platform *platform, u32 vf)
{
	bool is_used;

	vgpu_platform_lock(platform);
	is_used = has_user(platform, vf);
	vgpu_platform_unlock(platform);
	return is_used || vgpu_sriov_is_busy(platform, vf);
}

/*
 * Refuse new opens of the VF's node, so that a release meets no user. Return: 0, and then
 * vgpu_policy_reopen() must follow; or -EBUSY if the VF is in use.
 */
int vgpu_policy_close(struct vgpu_platform *platform, u32 vf)
{
	bool is_closed;

	vgpu_platform_lock(platform);
	is_closed = !has_user(platform, vf);
	platform->vfs[vf].is_closed = is_closed;
	vgpu_platform_unlock(platform);
	if (is_closed && !vgpu_sriov_is_busy(platform, vf))
		return 0;
	vgpu_policy_reopen(platform, vf);
	return -EBUSY;
}

/* Let users open the VF's node again. */
void vgpu_policy_reopen(struct vgpu_platform *platform, u32 vf)
{
	vgpu_platform_lock(platform);
	platform->vfs[vf].is_closed = false;
	vgpu_platform_unlock(platform);
}

static int change_quota(struct vgpu_platform *platform, u32 vf, u64 before, u64 bytes)
{
	u32 generation;
	int error = release(platform, vf);

	if (!error && bytes)
		error = provision(platform, vf, bytes, &generation);
	/* give the VF its previous size again, if that much VRAM is still free */
	if (error && bytes && before)
		provision(platform, vf, before, &generation);
	return error;
}

static int set_quota(struct vgpu_platform *platform, u32 vf, u64 bytes)
{
	u64 before = vgpu_policy_quota(platform, vf);
	int error;

	bytes = round_up(bytes, VGPU_VRAM_UNIT_BYTES);
	if (bytes == before && bytes)
		return 0;
	error = vgpu_policy_close(platform, vf);
	if (error)
		return error;
	error = change_quota(platform, vf, before, bytes);
	vgpu_policy_reopen(platform, vf);
	return error;
}

static bool is_anything_provisioned(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= platform->total_vfs; i++)
		if (vgpu_policy_quota(platform, i))
			return true;
	return false;
}

/*
 * Returns the VRAM of each of `count` equal VFs: a power of two or, if that is smaller, the size of
 * the aperture; 0: the device is too small. One unit of VRAM is the PF's. The result depends only
 * on the device and the count, so that the same write to sriov_numvfs gives the same sizes each
 * time.
 */
static u64 fair_bytes(const struct vgpu_platform *platform, u32 count)
{
	const struct vgpu_pf_device *device = vgpu_pf_view_device(platform->pf);
	u64 share = (device->vram_bytes - VGPU_VRAM_UNIT_BYTES) / count;

	if (share < VGPU_VRAM_UNIT_BYTES)
		return 0;
	return min_t(u64, rounddown_pow_of_two(share), device->aperture_bytes);
}

/*
 * Provision VFs 1 to count with equal parts of VRAM, before the VFs' functions are enabled.
 * Provisions nothing if a VF has resources already, a client holds the lease, or the device is too
 * small for so many parts. Releases the VFs again after an error. Return: 0, also if nothing was
 * provisioned; or a negative errno.
 */
int vgpu_policy_provision_fair(struct vgpu_platform *platform, u32 count)
{
	u64 bytes = fair_bytes(platform, count);
	int error = 0;

	vgpu_policy_release_remaining(platform);
	if (vgpu_pf_view_is_leased(platform->pf) || is_anything_provisioned(platform))
		return 0;
	if (bytes == 0) {
		dev_warn(&platform->pdev->dev, "%u VFs are too many for equal parts of %llu MiB\n",
			 count, vgpu_pf_view_device(platform->pf)->vram_bytes >> 20);
		return 0;
	}
	for (u32 i = 1; !error && i <= count; i++) {
		u32 generation = 0;

		error = release(platform, i);
		if (!error && fatal_signal_pending(current))
			error = -EINTR;
		if (!error)
			error = provision(platform, i, bytes, &generation);
		platform->vfs[i].auto_generation = error ? 0 : generation;
	}
	if (error)
		vgpu_policy_release_auto(platform);
	return error;
}

/* true if the VF has resources of this generation that are not being released */
static bool has_auto_resources(struct vgpu_platform *platform, u32 vf, u32 generation)
{
	struct vgpu_pf_vf_view view = vgpu_platform_view(platform, vf);

	return view.generation == generation && has_resources(&view);
}

/* returns true if the release has begun */
static bool start_auto_release(struct vgpu_platform *platform, u32 vf)
{
	u32 generation = platform->vfs[vf].auto_generation;
	bool has_auto = generation && has_auto_resources(platform, vf, generation);

	if (has_auto && start_release(platform, vf, generation)) {
		/* the device may be lost: vgpu_policy_release_remaining() retries */
		dev_err(&platform->pdev->dev, "VF%u: was not released\n", vf);
		return false;
	}
	platform->vfs[vf].auto_generation = 0;
	return has_auto;
}

/*
 * Release the VFs that sriov_numvfs provisioned, and wait for the scrubs. After a failure,
 * vgpu_policy_release_remaining() retries.
 */
void vgpu_policy_release_auto(struct vgpu_platform *platform)
{
	u32 started = 0;

	for (u32 i = 1; i <= platform->total_vfs; i++)
		started |= start_auto_release(platform, i) ? BIT(i) : 0;
	for (u32 i = 1; i <= platform->total_vfs; i++)
		if (started & BIT(i))
			wait_until_absent(platform, i);
}

/*
 * Release the VFs that vgpu_policy_release_auto() could not release when their functions were
 * removed; do not wait for the scrubs. A VF in use keeps its resources until a later call finds
 * the VF unused. Do nothing while functions are enabled, the device is lost or suspended, or a
 * client holds the lease.
 */
void vgpu_policy_release_remaining(struct vgpu_platform *platform)
{
	if (pci_num_vf(platform->pdev) || READ_ONCE(platform->is_device_lost) ||
	    READ_ONCE(platform->is_device_suspended) || vgpu_pf_view_is_leased(platform->pf))
		return;
	for (u32 i = 1; i <= platform->total_vfs; i++) {
		if (platform->vfs[i].auto_generation == 0 || vgpu_policy_close(platform, i))
			continue;
		start_auto_release(platform, i);
		vgpu_policy_reopen(platform, i);
	}
}

/* ---- writes ---- */

static int set_preempt_timeout(struct vgpu_platform *platform, u32 vf, u64 value)
{
	int error = 0;

	vgpu_platform_lock(platform);
	if (!platform->is_gone && vgpu_pf_view_vf(platform->pf, vf).is_provisioned)
		error = vgpu_pf_set_preempt_timeout(platform->pf, vf, (u32)value);
	vgpu_platform_unlock(platform);
	if (!error)
		platform->policies.vfs[vf].preempt_timeout_us = (u32)value;
	return error;
}

/* is_strict selects LOW or NORMAL for all VFs together, so a VF records only whether it is HIGH */
static int set_priority(struct vgpu_platform *platform, u32 vf, u64 value)
{
	platform->policies.vfs[vf].priority =
		value == VGPU_PRIORITY_HIGH ? VGPU_PRIORITY_HIGH : VGPU_PRIORITY_LOW;
	return 0;
}

static u32 sum_of_floors(const struct vgpu_platform *platform, u32 except)
{
	u32 sum = 0;

	for (u32 i = 1; i <= platform->total_vfs; i++)
		sum += i == except ? 0 : platform->policies.vfs[i].min_pct;
	return sum;
}

static int set_min_pct(struct vgpu_platform *platform, u32 vf, u64 value)
{
	struct vgpu_policy *policy = &platform->policies.vfs[vf];

	if (value > policy->max_pct)
		return -EINVAL;
	if (sum_of_floors(platform, vf) + value > 100)
		return -ENOSPC;
	policy->min_pct = (u32)value;
	return 0;
}

static int set_max_pct(struct vgpu_platform *platform, u32 vf, u64 value)
{
	struct vgpu_policy *policy = &platform->policies.vfs[vf];

	if (value < policy->min_pct)
		return -EINVAL;
	policy->max_pct = (u32)value;
	return 0;
}

static int set_weight(struct vgpu_platform *platform, u32 vf, u64 value)
{
	platform->policies.vfs[vf].weight = (u32)value;
	return 0;
}

static int set_quantum(struct vgpu_platform *platform, u32 vf, u64 value)
{
	platform->policies.vfs[vf].exec_quantum_ms = (u32)value;
	return 0;
}

struct policy_row {
	u64 min, max; /* range of the value */
	int (*set)(struct vgpu_platform *platform, u32 vf, u64 value);
	bool replans_table; /* true if a write plans the run table again */
	bool is_notified;   /* under a lease, a write becomes an event (true) or fails (false) */
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
 * Returns the priority that cannot be written to the VF (EPERM). Either all VFs keep their slices
 * without work (NORMAL) or none does (LOW), so one VF cannot change between NORMAL and LOW. A write
 * for all VFs cannot be HIGH.
 */
static enum vgpu_priority refused_priority(const struct vgpu_platform *platform, u32 vf)
{
	if (vf == VGPU_ALL_VFS)
		return VGPU_PRIORITY_HIGH;
	return platform->policies.is_strict ? VGPU_PRIORITY_LOW : VGPU_PRIORITY_NORMAL;
}

static int check(const struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy,
		 u64 value)
{
	if (value < rows[policy].min || value > rows[policy].max)
		return -EINVAL;
	if (policy != VGPU_PF_POLICY_SCHED_PRIORITY || value != refused_priority(platform, vf))
		return 0;
	return -EPERM;
}

/* returns true if a client holds the lease; error: receives the result for the writer */
static bool notify_lease_holder(struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy,
				u64 value, int *error)
{
	bool is_leased;

	vgpu_platform_lock(platform);
	is_leased = vgpu_pf_view_is_leased(platform->pf) && !platform->is_gone;
	*error = is_leased && !rows[policy].is_notified ? -EBUSY : 0;
	if (is_leased && !*error)
		vgpu_pf_report_policy(platform->pf, vf == VGPU_ALL_VFS ? 0 : vf, policy, value);
	vgpu_platform_unlock(platform);
	return is_leased;
}

static int set_all(struct vgpu_platform *platform, const struct policy_row *row,
		   enum vgpu_pf_policy policy, u64 value)
{
	int error = 0;

	if (policy == VGPU_PF_POLICY_SCHED_PRIORITY)
		platform->policies.is_strict = value == VGPU_PRIORITY_NORMAL;
	for (u32 i = 1; !error && i <= platform->total_vfs; i++)
		error = row->set(platform, i, value);
	return error;
}

static int set(struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	const struct policy_row *row = &rows[policy];

	return vf == VGPU_ALL_VFS ? set_all(platform, row, policy, value)
				  : row->set(platform, vf, value);
}

static int set_and_plan(struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy,
			u64 value)
{
	/* restored if the new plan fails, so that the files show the values in force */
	struct vgpu_policies before = platform->policies;
	int error = set(platform, vf, policy, value);

	if (!error)
		error = vgpu_plan_table(platform);
	if (error)
		platform->policies = before;
	return error;
}

/*
 * Apply a policy that was written to sysfs for a VF or VGPU_ALL_VFS, in the unit of the file.
 * platform->admin is held. Return: 0, or a negative errno for write(2).
 */
int vgpu_policy_write(struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	int error = check(platform, vf, policy, value);

	if (error)
		return error;
	if (notify_lease_holder(platform, vf, policy, value, &error))
		return error;
	return rows[policy].replans_table ? set_and_plan(platform, vf, policy, value)
					  : set(platform, vf, policy, value);
}
