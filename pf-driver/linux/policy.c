// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Policy without a policy writer: what sysfs is told when nobody holds the lease.
 *
 * With a lease every write becomes an event for its holder and nothing else happens here. Without
 * one, the first write makes this file plan the run table from then on: each VF gets one entry. The
 * VFs with resources divide a round by quantum times weight, none below its min_pct or above its
 * max_pct, and the round is shrunk until nobody is off the engine for longer than max_gap_ms; when
 * VFs get or lose resources it is divided anew. Weights and floors hold while all VFs have work;
 * caps are contracts too, and hold always. What vgpud does beyond that (debits, idle shares) needs
 * vgpud. Contracts that a policy writer leaves behind stay in force.
 *
 * VRAM: writing vram_quota provisions or releases a VF. numvfs provisions all in equal parts if
 * nothing was provisioned before, and takes back just that: the generation of each grant is kept,
 * so that a VF which somebody released and provisioned anew is left alone. A release begun here is
 * also confirmed here (confirms_scrub): SCRUB_DURABLE exists so that a record on disk never says
 * less than the device; without vgpud there is no such record, and all VRAM that a new core finds
 * without an owner counts as dirty. A release asked for through the char device stays its client's
 * to confirm.
 *
 * All of this under home->admin; the core's lock is taken inside, for each step.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/linux/home.h"

#define QUANTUM_DEFAULT_US 6000u
#define QUANTUM_MIN_US	   500u
#define QUANTUM_MAX_US	   1000000u
#define WEIGHT_DEFAULT	   100u
#define WEIGHT_MAX	   10000u
#define PREEMPT_MAX_US	   100000000u
#define PPM_OF_PCT	   (VGPU_SHARE_WHOLE_PPM / 100)
/* to release and to scrub one VF; far more than a device needs */
#define RELEASE_TIMEOUT_S 60u

/**
 * vgpu_policy_init() - nobody has said anything yet
 * @home: the home
 */
void vgpu_policy_init(struct vgpu_home *home)
{
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++)
		home->vfs[i].policy =
			(struct vgpu_policy){.weight = WEIGHT_DEFAULT, .max_pct = 100};
}

/* ---- the fallback run table ---- */

static u64 wanted_us(const struct vgpu_policy *policy)
{
	u64 quantum_us = policy->exec_quantum_ms ? (u64)policy->exec_quantum_ms * USEC_PER_MSEC
						 : QUANTUM_DEFAULT_US;

	return quantum_us * policy->weight / WEIGHT_DEFAULT;
}

/* those with resources: the others have no turns that anybody could miss */
static u32 sharing_vfs(const struct vgpu_home *home)
{
	u32 mask = 0;

	for (u32 i = 1; i <= home->pf->device.total_vfs; i++) {
		enum vgpu_pf_vf_state state = READ_ONCE(home->vfs[i].seen_state);

		if (state != VGPU_PF_VF_ABSENT && state != VGPU_PF_VF_SCRUBBING)
			mask |= BIT(i);
	}
	return mask;
}

struct vgpu_plan {
	u32 vfs; /* bit per VF number */
	u64 cycle_us;
	u32 ppm[VGPU_PF_MAX_VFS + 1]; /* of the round, by VF number */
};

/* as long as the quanta make it, but nobody is off the engine for longer than max_gap_ms */
static u64 cycle_of(const struct vgpu_home *home, u32 vfs)
{
	u64 most_us = (u64)READ_ONCE(home->pf->params.max_gap_ms) * USEC_PER_MSEC;
	u64 cycle_us = 0;

	for (u32 i = 1; i <= home->pf->device.total_vfs; i++)
		cycle_us += vfs & BIT(i) ? wanted_us(&home->vfs[i].policy) : 0;
	cycle_us = max_t(u64, cycle_us, QUANTUM_MIN_US);
	return most_us ? min(cycle_us, most_us) : cycle_us;
}

/* a part cannot be shorter than the shortest quantum */
static u32 least_ppm(const struct vgpu_policy *policy, u64 cycle_us)
{
	u64 shortest = DIV_ROUND_UP_ULL((u64)QUANTUM_MIN_US * VGPU_SHARE_WHOLE_PPM, cycle_us);

	return (u32)max_t(u64, policy->min_pct * PPM_OF_PCT, min_t(u64, shortest, U32_MAX));
}

static void make_plan(const struct vgpu_home *home, struct vgpu_plan *plan)
{
	struct vgpu_share shares[VGPU_PF_MAX_VFS] = {};
	u32 count = 0;

	plan->vfs = sharing_vfs(home);
	plan->cycle_us = cycle_of(home, plan->vfs);
	for (u32 i = 1; i <= home->pf->device.total_vfs; i++)
		if (plan->vfs & BIT(i)) {
			const struct vgpu_policy *policy = &home->vfs[i].policy;

			shares[count++] = (struct vgpu_share){
				.weight = wanted_us(policy),
				.least_ppm = least_ppm(policy, plan->cycle_us),
				.most_ppm = policy->max_pct * PPM_OF_PCT,
			};
		}
	vgpu_pf_share_divide(shares, count);
	count = 0;
	for (u32 i = 1; i <= home->pf->device.total_vfs; i++)
		plan->ppm[i] = plan->vfs & BIT(i) ? shares[count++].ppm : 0;
}

static u32 quantum_us(const struct vgpu_home *home, const struct vgpu_plan *plan, u32 vf)
{
	u64 wanted = plan->vfs & BIT(vf) ? plan->cycle_us * plan->ppm[vf] / VGPU_SHARE_WHOLE_PPM
					 : wanted_us(&home->vfs[vf].policy);

	return (u32)clamp_t(u64, wanted, QUANTUM_MIN_US, QUANTUM_MAX_US);
}

/*
 * What a policy writer that has gone had promised stays in force; of the caps, those that this file
 * has set are its own to change. A gang has no cap.
 */
static void fill_contract(struct vgpu_policy *policy, u32 quantum,
			  struct vgpu_pf_contract *contract)
{
	bool is_ours = policy->cap_ppm && contract->rate_ppm == policy->cap_ppm;

	if (is_ours) {
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

/* table: receives the plan; contracts are those in force */
static void fill_table(struct vgpu_home *home, const struct vgpu_plan *plan,
		       struct vgpu_pf_run_table *table)
{
	for (u32 i = 1; i <= home->pf->device.total_vfs; i++) {
		struct vgpu_policy *policy = &home->vfs[i].policy;
		struct vgpu_pf_run_entry entry = {.vf = i, .quantum_us = quantum_us(home, plan, i)};

		table->entries[table->count++] = entry;
		if (policy->priority == VGPU_PRIORITY_HIGH)
			table->reserve[table->reserve_count++] = entry;
		fill_contract(policy, entry.quantum_us, &table->contracts[i - 1]);
	}
	table->flags = home->is_strict ? VGPU_PF_TABLE_STRICT : 0;
}

/* table: two of them; the second is the one in force */
static int set_plan(struct vgpu_home *home, struct vgpu_pf_run_table *table)
{
	struct vgpu_plan plan = {};
	int error;

	make_plan(home, &plan);
	table->size = sizeof(*table);
	table->generation = table[1].generation + 1;
	memcpy(table->contracts, table[1].contracts, sizeof(table->contracts));
	fill_table(home, &plan, table);
	error = vgpu_home_request(home, VGPU_PF_OP_SET_RUN_TABLE, table);
	if (error)
		return error;
	home->planned_generation = table->generation;
	home->planned_vfs = plan.vfs;
	return 0;
}

/* known: generation of the table that may be replaced; 0: of any */
static int plan_table(struct vgpu_home *home, u64 known)
{
	struct vgpu_pf_run_table *table = kvzalloc(2 * sizeof(*table), GFP_KERNEL);
	int error;

	if (!table)
		return -ENOMEM;
	error = vgpu_home_request(home, VGPU_PF_OP_GET_RUN_TABLE, &table[1]);
	if (!error && (known == 0 || table[1].generation == known))
		error = set_plan(home, table);
	kvfree(table);
	return error;
}

/**
 * vgpu_policy_follow() - VFs may have got or lost their resources: divide the engine anew
 * @home: the home; home->admin is held
 *
 * A table that is not a plan of this file stays as it is, whoever has set it.
 */
void vgpu_policy_follow(struct vgpu_home *home)
{
	if (home->planned_generation == 0 || READ_ONCE(home->lease_holder) ||
	    home->planned_vfs == sharing_vfs(home))
		return;
	if (plan_table(home, home->planned_generation) == 0)
		home->planned_vfs = sharing_vfs(home);
}

/* ---- VRAM ---- */

static bool is_in_state(struct vgpu_home *home, u32 vf, enum vgpu_pf_vf_state state)
{
	return READ_ONCE(home->is_gone) || READ_ONCE(home->vfs[vf].seen_state) == state;
}

/**
 * vgpu_policy_quota() - VRAM of a VF
 * @home: the home
 * @vf: number
 *
 * Return: bytes; 0 if it has none any more.
 */
u64 vgpu_policy_quota(struct vgpu_home *home, u32 vf)
{
	const struct vgpu_vf *core = &home->pf->vfs[vf];
	u64 bytes = 0;

	vgpu_home_lock(home);
	if (core->state != VGPU_PF_VF_ABSENT && core->state != VGPU_PF_VF_SCRUBBING)
		bytes = core->config.vram_bytes;
	vgpu_home_unlock(home);
	return bytes;
}

/**
 * vgpu_policy_preempt_timeout() - how long a VF may take to leave the engine
 * @home: the home
 * @vf: number
 *
 * Return: us; 0: default.
 */
u32 vgpu_policy_preempt_timeout(struct vgpu_home *home, u32 vf)
{
	const struct vgpu_vf *core = &home->pf->vfs[vf];
	u32 timeout_us;

	vgpu_home_lock(home);
	timeout_us = vgpu_vf_is_provisioned(core) ? core->config.preempt_timeout_us
						  : home->vfs[vf].policy.preempt_timeout_us;
	vgpu_home_unlock(home);
	return timeout_us;
}

/* generation: 0: whatever it is */
static int start_release(struct vgpu_home *home, u32 vf, u32 generation)
{
	struct vgpu_pf_vf_ref ref = {.size = sizeof(ref), .vf = vf, .generation = generation};
	enum vgpu_pf_vf_state state;
	int error;

	vgpu_home_lock(home);
	state = home->pf->vfs[vf].state;
	home->vfs[vf].confirms_scrub = state != VGPU_PF_VF_ABSENT;
	vgpu_home_unlock(home);
	if (state == VGPU_PF_VF_ABSENT || state == VGPU_PF_VF_SCRUBBING)
		return 0;
	error = vgpu_home_request(home, VGPU_PF_OP_RELEASE, &ref);
	if (error) {
		vgpu_home_lock(home);
		home->vfs[vf].confirms_scrub = false;
		vgpu_home_unlock(home);
	}
	return error;
}

static int wait_absent(struct vgpu_home *home, u32 vf)
{
	long left = wait_event_killable_timeout(home->state_wait,
						is_in_state(home, vf, VGPU_PF_VF_ABSENT),
						(long)msecs_to_jiffies(RELEASE_TIMEOUT_S * 1000));

	if (READ_ONCE(home->is_gone))
		return -ENODEV;
	return left > 0 ? 0 : left == 0 ? -ETIMEDOUT : -EINTR;
}

static int release(struct vgpu_home *home, u32 vf)
{
	int error = start_release(home, vf, 0);

	return error ? error : wait_absent(home, vf);
}

/* generation: receives that of the grant */
static int provision(struct vgpu_home *home, u32 vf, u64 bytes, u32 *generation)
{
	struct vgpu_pf_provision request = {
		.size = sizeof(request),
		.vf = vf,
		.vram_bytes = bytes,
		.preempt_timeout_us = home->vfs[vf].policy.preempt_timeout_us,
	};
	int error = vgpu_home_request(home, VGPU_PF_OP_PROVISION, &request);

	*generation = request.generation;
	return error;
}

/**
 * vgpu_policy_is_in_use() - would somebody miss this VF's resources?
 * @home: the home
 * @vf: number
 */
bool vgpu_policy_is_in_use(struct vgpu_home *home, u32 vf)
{
	const struct vgpu_vf *core = &home->pf->vfs[vf];
	bool is_used;

	vgpu_home_lock(home);
	is_used = home->vfs[vf].is_open || core->control.driver_loaded;
	vgpu_home_unlock(home);
	return is_used || vgpu_sriov_is_busy(home, vf);
}

static int set_quota(struct vgpu_home *home, u32 vf, u64 bytes)
{
	u64 before = vgpu_policy_quota(home, vf);
	u32 generation;
	int error;

	bytes = round_up(bytes, VGPU_VRAM_UNIT_BYTES);
	if (bytes == before && bytes)
		return 0;
	if (vgpu_policy_is_in_use(home, vf))
		return -EBUSY;
	error = release(home, vf);
	if (!error && bytes)
		error = provision(home, vf, bytes, &generation);
	/* as it was, if it can be had */
	if (error && bytes && before)
		provision(home, vf, before, &generation);
	return error;
}

static bool is_anything_provisioned(struct vgpu_home *home)
{
	for (u32 i = 1; i <= home->pf->device.total_vfs; i++)
		if (vgpu_policy_quota(home, i))
			return true;
	return false;
}

/* the same for the same device and count, whatever happened before */
static u64 fair_bytes(const struct vgpu_home *home, u32 count)
{
	const struct vgpu_pf_device *device = &home->pf->device;
	u64 share = (device->vram_bytes - VGPU_VRAM_UNIT_BYTES) / count;

	if (share < VGPU_VRAM_UNIT_BYTES)
		return 0;
	return min_t(u64, rounddown_pow_of_two(share), device->aperture_bytes);
}

/**
 * vgpu_policy_provision_fair() - equal parts of VRAM for VFs 1 to count
 * @home: the home
 * @count: how many VFs are about to be enabled
 *
 * Nothing happens if a VF has resources already, or a lease holder decides. A device too small for
 * so many equal parts leaves its VFs without: they can be enabled all the same.
 */
int vgpu_policy_provision_fair(struct vgpu_home *home, u32 count)
{
	u64 bytes = fair_bytes(home, count);
	int error = 0;

	if (READ_ONCE(home->lease_holder) || is_anything_provisioned(home))
		return 0;
	if (bytes == 0) {
		dev_warn(&home->pdev->dev, "%u VFs are too many for equal parts of %llu MiB\n",
			 count, home->pf->device.vram_bytes >> 20);
		return 0;
	}
	for (u32 i = 1; !error && i <= count; i++) {
		u32 generation = 0;

		error = release(home, i);
		if (!error)
			error = provision(home, i, bytes, &generation);
		home->vfs[i].auto_generation = error ? 0 : generation;
	}
	if (error)
		vgpu_policy_release_auto(home);
	return error;
}

/* does the VF still have what numvfs gave, and not what somebody else gave it since? */
static bool is_auto(struct vgpu_home *home, u32 vf, u32 generation)
{
	const struct vgpu_vf *core = &home->pf->vfs[vf];
	bool is_same;

	vgpu_home_lock(home);
	is_same = core->generation == generation && core->state != VGPU_PF_VF_ABSENT &&
		  core->state != VGPU_PF_VF_SCRUBBING;
	vgpu_home_unlock(home);
	return is_same;
}

/**
 * vgpu_policy_release_auto() - take back what numvfs gave
 * @home: the home
 */
void vgpu_policy_release_auto(struct vgpu_home *home)
{
	u32 started = 0;

	for (u32 i = 1; i <= home->pf->device.total_vfs; i++) {
		u32 generation = home->vfs[i].auto_generation;

		home->vfs[i].auto_generation = 0;
		if (generation == 0 || !is_auto(home, i, generation))
			continue;
		if (start_release(home, i, generation))
			dev_err(&home->pdev->dev, "VF%u: was not released\n", i);
		else
			started |= BIT(i);
	}
	for (u32 i = 1; i <= home->pf->device.total_vfs; i++)
		if (started & BIT(i))
			wait_absent(home, i);
}

/* ---- writes ---- */

static int set_preempt_timeout(struct vgpu_home *home, u32 vf, u64 value)
{
	int error = 0;

	vgpu_home_lock(home);
	if (!home->is_gone && vgpu_vf_is_provisioned(&home->pf->vfs[vf]))
		error = vgpu_pf_set_preempt_timeout(home->pf, vf, (u32)value);
	vgpu_home_unlock(home);
	if (!error)
		home->vfs[vf].policy.preempt_timeout_us = (u32)value;
	return error;
}

static int set_priority(struct vgpu_home *home, u32 vf, u64 value)
{
	home->vfs[vf].policy.priority = (enum vgpu_priority)value;
	return 0;
}

static u32 sum_of_floors(const struct vgpu_home *home, u32 except)
{
	u32 sum = 0;

	for (u32 i = 1; i <= home->pf->device.total_vfs; i++)
		sum += i == except ? 0 : home->vfs[i].policy.min_pct;
	return sum;
}

static int set_min_pct(struct vgpu_home *home, u32 vf, u64 value)
{
	struct vgpu_policy *policy = &home->vfs[vf].policy;

	if (value > policy->max_pct)
		return -EINVAL;
	if (sum_of_floors(home, vf) + value > 100)
		return -ENOSPC;
	policy->min_pct = (u32)value;
	return 0;
}

static int set_max_pct(struct vgpu_home *home, u32 vf, u64 value)
{
	struct vgpu_policy *policy = &home->vfs[vf].policy;

	if (value < policy->min_pct)
		return -EINVAL;
	policy->max_pct = (u32)value;
	return 0;
}

static int set_weight(struct vgpu_home *home, u32 vf, u64 value)
{
	home->vfs[vf].policy.weight = (u32)value;
	return 0;
}

static int set_quantum(struct vgpu_home *home, u32 vf, u64 value)
{
	home->vfs[vf].policy.exec_quantum_ms = (u32)value;
	return 0;
}

struct policy_row {
	u64 least, most;
	int (*set)(struct vgpu_home *home, u32 vf, u64 value);
	bool is_of_table; /* the run table is planned anew */
};

static const struct policy_row rows[] = {
	[VGPU_PF_POLICY_EXEC_QUANTUM_MS] = {0, QUANTUM_MAX_US / USEC_PER_MSEC, set_quantum, true},
	[VGPU_PF_POLICY_PREEMPT_TIMEOUT_US] = {0, PREEMPT_MAX_US, set_preempt_timeout, false},
	[VGPU_PF_POLICY_SCHED_PRIORITY] = {0, VGPU_PRIORITY_HIGH, set_priority, true},
	[VGPU_PF_POLICY_VRAM_QUOTA] = {0, U64_MAX - VGPU_VRAM_UNIT_BYTES, set_quota, false},
	[VGPU_PF_POLICY_WEIGHT] = {1, WEIGHT_MAX, set_weight, true},
	[VGPU_PF_POLICY_MIN_PCT] = {0, 100, set_min_pct, true},
	[VGPU_PF_POLICY_MAX_PCT] = {1, 100, set_max_pct, true},
};

/* turns that are kept while idle are for all VFs or none, an advance never for all */
static int check(u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	u64 refused = vf == VGPU_ALL_VFS ? VGPU_PRIORITY_HIGH : VGPU_PRIORITY_NORMAL;

	if (value < rows[policy].least || value > rows[policy].most)
		return -EINVAL;
	return policy == VGPU_PF_POLICY_SCHED_PRIORITY && value == refused ? -EPERM : 0;
}

/* true: the lease holder was told, and decides */
static bool tell_lease_holder(struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	bool is_told;

	vgpu_home_lock(home);
	is_told = home->lease_holder && !home->is_gone;
	if (is_told)
		vgpu_pf_report_policy(home->pf, vf == VGPU_ALL_VFS ? 0 : vf, policy, value);
	vgpu_home_unlock(home);
	return is_told;
}

static int set_all(struct vgpu_home *home, const struct policy_row *row, enum vgpu_pf_policy policy,
		   u64 value)
{
	int error = 0;

	if (policy == VGPU_PF_POLICY_SCHED_PRIORITY) {
		home->is_strict = value == VGPU_PRIORITY_NORMAL;
		value = VGPU_PRIORITY_LOW;
	}
	for (u32 i = 1; !error && i <= home->pf->device.total_vfs; i++)
		error = row->set(home, i, value);
	return error;
}

/**
 * vgpu_policy_write() - sysfs was told a policy
 * @home: the home; home->admin is held
 * @vf: number, or VGPU_ALL_VFS
 * @policy: what
 * @value: in the unit of the file
 *
 * Return: 0, or a negative errno for write(2).
 */
int vgpu_policy_write(struct vgpu_home *home, u32 vf, enum vgpu_pf_policy policy, u64 value)
{
	const struct policy_row *row = &rows[policy];
	int error = check(vf, policy, value);

	if (error)
		return error;
	if (tell_lease_holder(home, vf, policy, value))
		return 0;
	error = vf == VGPU_ALL_VFS ? set_all(home, row, policy, value) : row->set(home, vf, value);
	if (error || !row->is_of_table)
		return error;
	return plan_table(home, 0);
}
