// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Service accounting, from the device's run log only: the table says what a VF was to get, the log
 * what it got. Every run but that of a reservation is charged to the VF's share (share.c), a
 * run of the reserve section to the budget of its cycle as well, and the run of a reservation to
 * the reservation's budget. Each is taken off the tokens of a cap. A run that was longer than its
 * grant is counted as an overrun:
 *
 *   SLICE RESERVE CONTRACT  what is beyond the grant
 *   SOLE REST               what is beyond the quantum, from when another VF began to wait
 *   RESCUE                  never: its turn was not in the table
 */
#include "pf-driver/core/run/state.h"
#include "pf-driver/hw/regs.h"

#define LOG_ENTRIES	     256u
#define OVERRUN_NOTABLE_NS   (200 * VGPU_NS_PER_US)
#define SWITCH_BUCKET_BASE   8u /* bucket 0 ends at 256 ns */
#define SWITCH_LATELY_MAX_NS (2 * VGPU_NS_PER_MS)
#define SWITCH_LATELY_PART   32u /* switches in the mean */

/**
 * vgpu_pf_run_account_start() - give the device a ring to write its log to
 * @pf: the PF
 */
void vgpu_pf_run_account_start(struct vgpu_pf *pf)
{
	struct vgpu_os_dma *log = &pf->executor.log;

	pf->executor.log_next = 0;
	if (pf->os->ops->dma_alloc(pf->os, LOG_ENTRIES * sizeof(struct vgpu_hw_run_log_entry),
				   log)) {
		log->cpu = NULL;
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR,
				 "no memory for the run log: service of "
				 "VFs is not accounted");
		return;
	}
	vgpu_pf_device_write(pf, REG_VGPU_LOG_BASE_LO, (uint32_t)log->bus);
	vgpu_pf_device_write(pf, REG_VGPU_LOG_BASE_HI, (uint32_t)(log->bus >> 32));
	vgpu_pf_device_write(pf, REG_VGPU_LOG_SIZE, LOG_ENTRIES);
}

/**
 * vgpu_pf_run_account_stop() - take the ring back
 * @pf: the PF; the device has been told, or is gone
 */
void vgpu_pf_run_account_stop(struct vgpu_pf *pf)
{
	if (!pf->executor.log.cpu)
		return;
	if (pf->device.is_attached)
		vgpu_pf_device_write(pf, REG_VGPU_LOG_SIZE, 0);
	pf->os->ops->dma_free(pf->os, &pf->executor.log);
	pf->executor.log.cpu = NULL;
}

/* the run this entry is about; entries come in the order of the runs */
static struct vgpu_run *find_run(struct vgpu_pf_executor *executor, uint32_t vf)
{
	if (executor->last.vf == vf && !executor->last.is_accounted)
		return &executor->last;
	if (executor->run.vf == vf && !executor->run.is_accounted)
		return &executor->run;
	return NULL;
}

static uint64_t allowed_ns(const struct vgpu_run *run)
{
	uint64_t until_contention;

	if (run->kind == VGPU_RUN_SLICE || run->kind == VGPU_RUN_RESERVE ||
	    run->kind == VGPU_RUN_CONTRACT)
		return run->granted_ns;
	if (run->kind == VGPU_RUN_RESCUE || run->contended_ns == 0)
		return UINT64_MAX;
	until_contention = run->contended_ns - run->started_ns;
	return vgpu_max_u64(run->quantum_ns, until_contention);
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

/* without work it only rested in the engine, because nobody else wanted it: no service */
static uint64_t rested_ns(const struct vgpu_run *run, const struct vgpu_hw_run_log_entry *entry)
{
	if (!run || (run->kind != VGPU_RUN_SOLE && run->kind != VGPU_RUN_REST))
		return 0;
	return vgpu_min_u64(entry->idle_ns, entry->run_end_ns - entry->run_start_ns);
}

/* once out of work it only waited for its slice to be taken away */
static uint64_t used_ns(const struct vgpu_run *run, uint64_t ran)
{
	return run->worked_ns ? vgpu_min_u64(ran, run->worked_ns) : ran;
}

static void charge(struct vgpu_pf *pf, struct vgpu_vf *vf, struct vgpu_run *run, uint64_t ran)
{
	uint64_t allowed = allowed_ns(run);

	run->is_accounted = true;
	if (run->kind == VGPU_RUN_RESERVE)
		vf->service.budget_ns -= (int64_t)used_ns(run, ran);
	count_overrun(pf, vf, ran > allowed ? ran - allowed : 0);
	if (run->is_cut && ran < run->granted_ns) {
		pf->executor.resume_vf = run->vf;
		pf->executor.resume_ns = run->granted_ns - ran;
	}
}

static void account(struct vgpu_pf *pf, const struct vgpu_hw_run_log_entry *entry)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	uint64_t ran = entry->run_end_ns - entry->run_start_ns;
	struct vgpu_pf_event event = {.type = VGPU_PF_EVENT_RUN,
				      .vf = entry->vf,
				      .time_ns = entry->run_end_ns,
				      .arg = entry->reason,
				      .arg2 = entry->park_ns};
	struct vgpu_vf *vf = &pf->vfs[entry->vf];
	struct vgpu_run *run = find_run(executor, entry->vf);

	ran -= rested_ns(run, entry);
	event.duration_ns = ran;
	if (run && run->kind == VGPU_RUN_CONTRACT)
		event.reserved_ns = used_ns(run, ran);
	vf->service.reserved_ns += event.reserved_ns;
	vf->service.ns += ran;
	vf->service.wave_instructions += entry->wave_instructions;
	vgpu_pf_event_push(pf, &event);
	if (entry->reason == VGPU_RUN_END_NO_WORK) {
		executor->is_busy_fresh = false;
		vgpu_pf_run_contract_idle(vf);
	}
	/* a cap bounds the time in the engine, at rest or not */
	vgpu_pf_run_contract_charge(pf, vf, run, entry->run_end_ns - entry->run_start_ns,
				    event.reserved_ns);
	vgpu_pf_run_share_log(pf, vf, run, run ? used_ns(run, ran) : ran,
			      entry->reason != VGPU_RUN_END_NO_WORK);
	if (!run)
		return;
	charge(pf, vf, run, ran);
	if (run != &executor->run || executor->state != VGPU_EXECUTOR_RUNNING)
		return;
	if (entry->reason == VGPU_RUN_END_RESET) {
		vgpu_pf_run_machine_lost(pf);
	} else {
		executor->state = VGPU_EXECUTOR_PARKED;
		executor->wants_decision = true;
	}
}

/* a run may end before the switch to it was seen to be complete: its entry waits */
static bool is_early(struct vgpu_pf_executor *executor, uint32_t vf)
{
	return executor->state == VGPU_EXECUTOR_SWITCHING && executor->next.vf == vf &&
	       !find_run(executor, vf);
}

static bool read_entry(struct vgpu_pf *pf, struct vgpu_hw_run_log_entry *entry)
{
	struct vgpu_pf_executor *executor = &pf->executor;
	struct vgpu_hw_run_log_entry *ring = executor->log.cpu;
	struct vgpu_hw_run_log_entry *slot = &ring[executor->log_next & (LOG_ENTRIES - 1)];

	if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != executor->log_next + 1)
		return false;
	memcpy(entry, slot, sizeof(*entry));
	if (is_early(executor, entry->vf))
		return false;
	executor->log_next++;
	return true;
}

/**
 * vgpu_pf_run_account_drain() - account for the runs that have ended
 * @pf: the PF
 */
void vgpu_pf_run_account_drain(struct vgpu_pf *pf)
{
	struct vgpu_hw_run_log_entry entry;

	if (!pf->executor.log.cpu)
		return;
	for (uint32_t i = 0; i < LOG_ENTRIES && read_entry(pf, &entry); i++) {
		/* the device is not trusted to name a VF that exists */
		if (entry.vf == 0 || entry.vf > pf->device.total_vfs ||
		    entry.run_end_ns < entry.run_start_ns)
			continue;
		account(pf, &entry);
	}
}

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

/* upper end of a bucket */
static uint64_t bucket_ns(uint32_t bucket)
{
	uint32_t octave;

	if (bucket == 0)
		return 1ull << SWITCH_BUCKET_BASE;
	octave = SWITCH_BUCKET_BASE + (bucket - 1) / 4;
	return (5ull + (bucket - 1) % 4) << (octave - 2);
}

/* the mean of the last ones; one that somebody held up for long says little of the next */
static void note_switch(struct vgpu_pf_executor *executor, uint64_t duration_ns)
{
	uint64_t part = vgpu_min_u64(executor->switches, SWITCH_LATELY_PART);

	duration_ns = vgpu_min_u64(duration_ns, SWITCH_LATELY_MAX_NS);
	executor->switch_lately_ns -= executor->switch_lately_ns / part;
	executor->switch_lately_ns += duration_ns / part;
}

/**
 * vgpu_pf_run_account_count_switch() - note how long a world switch took, end to end
 * @pf: the PF
 * @duration_ns: from decision to the end of RUN
 */
void vgpu_pf_run_account_count_switch(struct vgpu_pf *pf, uint64_t duration_ns)
{
	pf->executor.switches++;
	pf->executor.switch_max_ns = vgpu_max_u64(pf->executor.switch_max_ns, duration_ns);
	pf->executor.histogram[bucket_of(duration_ns)]++;
	note_switch(&pf->executor, duration_ns);
}

/**
 * vgpu_pf_run_account_percentile() - time of world switches, to a quarter of an octave
 * @pf: the PF
 * @per_mille: 500 for the median
 */
uint64_t vgpu_pf_run_account_percentile(const struct vgpu_pf *pf, uint32_t per_mille)
{
	uint64_t wanted = pf->executor.switches * per_mille / 1000;
	uint64_t seen = 0;

	if (pf->executor.switches == 0)
		return 0;
	for (uint32_t bucket = 0; bucket < VGPU_SWITCH_BUCKETS; bucket++) {
		seen += pf->executor.histogram[bucket];
		if (seen > wanted)
			return vgpu_min_u64(bucket_ns(bucket), pf->executor.switch_max_ns);
	}
	return pf->executor.switch_max_ns;
}
