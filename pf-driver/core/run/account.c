// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Counts the service of each VF from the device's run log. The run table is only a plan; the log
 * has the time that each VF really used. This file charges each run (a period of a VF in the
 * engine) according to its kind (enum vgpu_run_kind, in parentheses) to:
 *
 *   from a reservation (CONTRACT)       the reservation's budget
 *   in a gang slot (CONTRACT)           nothing
 *   from a reserve budget (RESERVE)     the VF's share, and its reserve budget (pick.c)
 *   other                               the VF's share (share.c)
 *
 * If the VF has a cap, the run also uses tokens. The core counts overruns of more than 200 us:
 *
 *   SLICE RESERVE CONTRACT     overrun = ran - granted time
 *   UNCONTENDED IDLE_RESIDENT  overrun = ran - max(quantum, time until another VF began to wait);
 *                              none if no VF waits
 *   BOOST                      none
 *
 * `ran` is the length of the run. For the kinds UNCONTENDED and IDLE_RESIDENT (endless runs), `ran`
 * does not include idle time.
 */
#include "pf-driver/core/run/internal.h"
#include "pf-driver/hw/regs.h"

#define OVERRUN_NOTABLE_NS (200 * VGPU_NS_PER_US)
#define SWITCH_BUCKET_BASE 8u			/* log2 of the upper end of bucket 0, in ns */
#define SWITCH_MEAN_MAX_NS (2 * VGPU_NS_PER_MS) /* a longer switch counts as this in the mean */
#define SWITCH_MEAN_COUNT  32u /* the n-th switch counts 1/min(n, 32) in the mean */

/* Allocate the ring of the run log, and give the ring to the device. */
void vgpu_pf_run_account_start(struct vgpu_pf *pf)
{
	struct vgpu_os_dma *log = &pf->scheduler.log.memory;

	pf->scheduler.log.next = 0;
	if (pf->os->ops->dma_alloc(pf->os, RUN_LOG_ENTRIES * sizeof(struct vgpu_hw_run_log_entry),
				   log)) {
		log->cpu = NULL;
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR,
				 "no memory for the run log: service of VFs is not accounted");
		return;
	}
	vgpu_pf_device_write(pf, REG_VGPU_LOG_BASE_LO, (uint32_t)log->bus);
	vgpu_pf_device_write(pf, REG_VGPU_LOG_BASE_HI, (uint32_t)(log->bus >> 32));
	vgpu_pf_device_write(pf, REG_VGPU_LOG_SIZE, RUN_LOG_ENTRIES);
}

/* Take the ring of the run log away from the device, if it is attached, and free the ring. */
void vgpu_pf_run_account_stop(struct vgpu_pf *pf)
{
	if (!pf->scheduler.log.memory.cpu)
		return;
	if (pf->device.is_attached)
		vgpu_pf_device_write(pf, REG_VGPU_LOG_SIZE, 0);
	pf->os->ops->dma_free(pf->os, &pf->scheduler.log.memory);
	pf->scheduler.log.memory.cpu = NULL;
}

/*
 * Finds the run of the VF's next log entry. Entries come in the order of the runs, so the result is
 * the VF's earliest run that is not accounted for. NULL: the core does not know the run.
 */
static struct vgpu_run *find_run(struct vgpu_pf_scheduler *scheduler, uint32_t vf)
{
	if (scheduler->last.vf == vf && !scheduler->last.is_accounted)
		return &scheduler->last;
	if (scheduler->run.vf == vf && !scheduler->run.is_accounted)
		return &scheduler->run;
	return NULL;
}

static void count_overrun(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t over)
{
	struct vgpu_pf_event event = {
		.type = VGPU_PF_EVENT_OVERRUN, .vf = vf->number, .duration_ns = over};

	if (over <= OVERRUN_NOTABLE_NS)
		return;
	vf->service.overruns++;
	vf->service.overrun_max_ns = vgpu_max_u64(vf->service.overrun_max_ns, over);
	vgpu_pf_event_push(pf, &event);
}

/* idle time of an endless run, which is not service; 0 for other runs */
static uint64_t idle_resident_ns(const struct vgpu_run *run,
				 const struct vgpu_hw_run_log_entry *entry)
{
	if (!run || vgpu_pf_run_kind(run)->has_end)
		return 0;
	return vgpu_min_u64(entry->idle_ns, entry->run_end_ns - entry->run_start_ns);
}

/* the part of `ran` until the VF ran out of work; the rest was only a wait for the end */
static uint64_t used_ns(const struct vgpu_run *run, uint64_t ran)
{
	return run->worked_ns ? vgpu_min_u64(ran, run->worked_ns) : ran;
}

/* charges the reserve budget, counts an overrun, and puts the rest of a cut slice into `end` */
static void close_run(struct vgpu_pf *pf, struct vgpu_vf *vf, struct vgpu_run *run, uint64_t ran,
		      struct vgpu_run_end *end)
{
	uint64_t allowed = vgpu_pf_run_kind_allowed_ns(run);

	run->is_accounted = true;
	if (run->kind == VGPU_RUN_RESERVE)
		vf->service.budget_ns -= (int64_t)used_ns(run, ran);
	count_overrun(pf, vf, ran > allowed ? ran - allowed : 0);
	if (run->is_cut && ran < run->granted_ns)
		end->cut_ns = run->granted_ns - ran;
}

static void account_run(struct vgpu_pf *pf, const struct vgpu_hw_run_log_entry *entry,
			struct vgpu_run_end *end)
{
	uint64_t in_engine = entry->run_end_ns - entry->run_start_ns;
	struct vgpu_run *run = find_run(&pf->scheduler, entry->vf);
	uint64_t ran = in_engine - idle_resident_ns(run, entry);
	struct vgpu_pf_event event = {.type = VGPU_PF_EVENT_RUN,
				      .vf = entry->vf,
				      .time_ns = entry->run_end_ns,
				      .duration_ns = ran,
				      .arg = entry->reason,
				      .arg2 = entry->park_ns};
	struct vgpu_vf *vf = &pf->vfs[entry->vf];

	end->vf = entry->vf;
	end->is_current = run == &pf->scheduler.run;
	end->has_no_work = entry->reason == VGPU_RUN_END_NO_WORK;
	end->is_reset = entry->reason == VGPU_RUN_END_RESET;
	if (run && run->kind == VGPU_RUN_CONTRACT)
		event.reserved_ns = used_ns(run, ran);
	vf->service.reserved_ns += event.reserved_ns;
	vf->service.ns += ran;
	vf->service.wave_instructions += entry->wave_instructions;
	vgpu_pf_event_push(pf, &event);
	/* the VF's next work counts as a wake, at which contract.c checks the budget */
	if (end->has_no_work)
		vf->contract.is_awake = false;
	/* a cap limits the time in the engine, with or without work */
	vgpu_pf_run_contract_charge(pf, vf, run, in_engine, event.reserved_ns);
	vgpu_pf_run_share_charge(pf, vf, run, run ? used_ns(run, ran) : ran, !end->has_no_work);
	if (run)
		close_run(pf, vf, run, ran, end);
}

/* true if the entry must wait, because the core has not yet handled the start of the run */
static bool is_early(struct vgpu_pf_scheduler *scheduler, uint32_t vf)
{
	return scheduler->state == VGPU_SCHEDULER_SWITCHING && scheduler->next.vf == vf &&
	       !find_run(scheduler, vf);
}

/* copies the next entry of the ring, if the core can handle the entry now */
static bool read_entry(struct vgpu_pf *pf, struct vgpu_hw_run_log_entry *entry)
{
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	struct vgpu_hw_run_log_entry *ring = scheduler->log.memory.cpu;
	struct vgpu_hw_run_log_entry *slot = &ring[scheduler->log.next & (RUN_LOG_ENTRIES - 1)];
	uint64_t seq;

	/* seq counts from 1; the device writes seq last */
	seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);
	if (seq <= scheduler->log.next)
		return false;
	/* a gap: the device could not write an entry, or has overwritten entries */
	scheduler->log.next = seq - 1;
	memcpy(entry, slot, sizeof(*entry));
	if (is_early(scheduler, entry->vf))
		return false;
	scheduler->log.next++;
	return true;
}

/*
 * Account for the next entry of the log, and fill in `end`. If the entry is not valid, skip it and
 * set all members of `end` to 0. Return: false if no entry is ready.
 */
bool vgpu_pf_run_account_next(struct vgpu_pf *pf, struct vgpu_run_end *end)
{
	struct vgpu_hw_run_log_entry entry;

	memset(end, 0, sizeof(*end));
	if (!pf->scheduler.log.memory.cpu || !read_entry(pf, &entry))
		return false;
	/* the device is not trusted: ignore entries with impossible VF numbers or times */
	if (entry.vf != 0 && entry.vf <= pf->device.total_vfs &&
	    entry.run_end_ns >= entry.run_start_ns)
		account_run(pf, &entry, end);
	return true;
}

/*
 * Finds the bucket of a duration. Bucket 0 ends at 256 ns. Then each octave (factor of 2) has four
 * buckets, which the two bits after the leading bit of the duration select.
 */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t octave = 0;
	uint32_t bucket;

	while (octave < 63 && (ns >> (octave + 1)))
		octave++;
	if (octave < SWITCH_BUCKET_BASE)
		return 0;
	bucket = 1 + (octave - SWITCH_BUCKET_BASE) * 4 + (uint32_t)((ns >> (octave - 2)) & 3);
	return bucket < VGPU_SWITCH_BUCKETS ? bucket : VGPU_SWITCH_BUCKETS - 1;
}

/* upper end of a bucket, in ns; quarter q (0 to 3) of octave n ends at 2^n * (5 + q) / 4 */
static uint64_t bucket_ns(uint32_t bucket)
{
	uint32_t octave;

	if (bucket == 0)
		return 1ull << SWITCH_BUCKET_BASE;
	octave = SWITCH_BUCKET_BASE + (bucket - 1) / 4;
	return (5ull + (bucket - 1) % 4) << (octave - 2);
}

/*
 * Updates the moving mean. A very long switch counts as SWITCH_MEAN_MAX_NS, because its duration
 * says little about the next switch.
 */
static void update_mean(struct vgpu_pf_scheduler *scheduler, uint64_t duration_ns)
{
	uint64_t count = vgpu_min_u64(scheduler->switches.count, SWITCH_MEAN_COUNT);

	duration_ns = vgpu_min_u64(duration_ns, SWITCH_MEAN_MAX_NS);
	scheduler->switches.mean_ns -= scheduler->switches.mean_ns / count;
	scheduler->switches.mean_ns += duration_ns / count;
}

/* Count a world switch. duration_ns: from the decision until the core has seen the switch end. */
void vgpu_pf_run_account_count_switch(struct vgpu_pf *pf, uint64_t duration_ns)
{
	pf->scheduler.switches.count++;
	pf->scheduler.switches.max_ns = vgpu_max_u64(pf->scheduler.switches.max_ns, duration_ns);
	pf->scheduler.switches.histogram[bucket_of(duration_ns)]++;
	update_mean(&pf->scheduler, duration_ns);
}

/* percentile of the durations of world switches in ns: end of its bucket, at most max_ns */
static uint64_t percentile(const struct vgpu_pf *pf, uint32_t per_mille)
{
	uint64_t rank = pf->scheduler.switches.count * per_mille / 1000;
	uint64_t seen = 0;

	if (pf->scheduler.switches.count == 0)
		return 0;
	for (uint32_t bucket = 0; bucket < VGPU_SWITCH_BUCKETS; bucket++) {
		seen += pf->scheduler.switches.histogram[bucket];
		if (seen > rank)
			return vgpu_min_u64(bucket_ns(bucket), pf->scheduler.switches.max_ns);
	}
	return pf->scheduler.switches.max_ns;
}

/* Fill in the number and durations of world switches. */
void vgpu_pf_run_account_info(const struct vgpu_pf *pf, struct vgpu_pf_info *info)
{
	info->switches = pf->scheduler.switches.count;
	info->switch_p50_ns = percentile(pf, 500);
	info->switch_p99_ns = percentile(pf, 990);
	info->switch_max_ns = pf->scheduler.switches.max_ns;
}
