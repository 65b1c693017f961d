// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PF: start, loss and return of the device, adoption of VFs in service, and the order in which
 * things settle at the end of every call.
 *
 *   attach, journal valid       adopt: VFs stay in service, nothing is reset (a new core, or a
 *                               connection that was cut while the device went on)
 *   attach, no valid journal    a device that has forgotten everything: VFs in memory, if there
 *                               are any, are programmed anew and start over as PROVISIONED
 *   attach, lost in its reset   the same: what its journal says is over
 */
#include "pf-driver/core/top/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

#define WATCHDOG_NS VGPU_NS_PER_S

#define INTR_SWITCH                                                                                \
	(GPUIOV_INTR_GFX_CMD_COMPLETE | GPUIOV_INTR_GFX_VM_BUSY |                                  \
	 GPUIOV_INTR_GFX_QUANTUM_EXPIRED | GPUIOV_INTR_GFX_VM_IDLE)
#define INTR_MAILBOX (GPUIOV_INTR_VF_FLR | GPUIOV_INTR_HVVM_MBOX_ACK | GPUIOV_INTR_HVVM_MBOX_VALID)

/**
 * vgpu_pf_init() - make a PF without a device
 * @pf: zeroed by this call
 * @os: the home
 * @params: copied
 *
 * Return: 0 or -EINVAL.
 */
int vgpu_pf_init(struct vgpu_pf *pf, struct vgpu_os *os, const struct vgpu_pf_params *params)
{
	if (!params->event_ring ||
	    params->event_ring_bytes < VGPU_PF_RING_EVENTS_OFFSET + sizeof(struct vgpu_pf_event) ||
	    params->time_scale == 0)
		return -EINVAL;
	memset(pf, 0, sizeof(*pf));
	pf->os = os;
	pf->params = *params;
	for (uint32_t i = 0; i <= VGPU_PF_MAX_VFS; i++) {
		pf->vfs[i].number = i;
		pf->vfs[i].service.quantum_us = UINT32_MAX;
		pf->vfs[i].control.gates = UINT32_MAX;
	}
	vgpu_pf_event_init(pf);
	return 0;
}

/* what became of the engine, what that means for its VFs, who is next */
static void settle_engine(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached) {
		vgpu_pf_inbox_settle(pf);
		return;
	}
	if (pf->whole_reset.is_wanted)
		vgpu_pf_device_reset_begin(pf);
	/* a run that has ended may have taken its VF out of the engine */
	vgpu_pf_run_engine_look(pf);
	vgpu_pf_inbox_settle(pf);
	vgpu_pf_run_engine_decide(pf);
}

/**
 * vgpu_pf_settle() - do what has become due, write it down, report it
 * @pf: the PF; the end of every call into the core
 */
void vgpu_pf_settle(struct vgpu_pf *pf)
{
	settle_engine(pf);
	vgpu_pf_journal_flush(pf);
	vgpu_pf_reply_flush(pf);
	if (pf->events.has_new) {
		pf->events.has_new = false;
		pf->os->ops->events_notify(pf->os);
	}
	vgpu_pf_timer_arm(pf);
}

/* ---- interrupts and time ---- */

struct interrupt_row {
	uint32_t bits;
	void (*handle)(struct vgpu_pf *pf);
};

/* in this order: what ended, then what is new */
static const struct interrupt_row interrupt_table[] = {
	{GPUIOV_INTR_GFX_CMD_COMPLETE, vgpu_pf_run_switch_poll},
	{GPUIOV_INTR_GFX_QUANTUM_EXPIRED, vgpu_pf_run_engine_expired},
	{GPUIOV_INTR_VF_FLR, vgpu_pf_reset_function_event},
	{GPUIOV_INTR_HVVM_MBOX_VALID | GPUIOV_INTR_HVVM_MBOX_ACK, vgpu_pf_mailbox_service},
	{GPUIOV_INTR_GFX_VM_IDLE, vgpu_pf_run_engine_idle},
	{GPUIOV_INTR_GFX_VM_BUSY, vgpu_pf_run_engine_wake},
};

static void service_interrupts(struct vgpu_pf *pf)
{
	uint32_t status = vgpu_pf_device_vsec_read(pf, GPUIOV_INTR_STATUS);

	/* all ones: the device is gone */
	if (status == UINT32_MAX)
		return;
	status &= INTR_SWITCH | INTR_MAILBOX;
	if (status == 0)
		return;
	/* cleared before it is handled: what comes meanwhile raises it again */
	vgpu_pf_device_vsec_write(pf, GPUIOV_INTR_STATUS, status);
	for (uint32_t i = 0; i < VGPU_COUNT_OF(interrupt_table); i++)
		if (status & interrupt_table[i].bits && pf->device.is_attached)
			interrupt_table[i].handle(pf);
}

/**
 * vgpu_pf_interrupt() - an MSI-X vector of the PF has fired
 * @pf: the PF; which vector it was does not matter
 */
void vgpu_pf_interrupt(struct vgpu_pf *pf)
{
	/* the run log is in our memory: a quantum that ended is followed by the next one at once,
	 * before the device is asked what else there is */
	settle_engine(pf);
	if (pf->device.is_attached)
		service_interrupts(pf);
	vgpu_pf_settle(pf);
}

/**
 * vgpu_pf_timer() - the timer set by timer_arm() has expired
 * @pf: the PF
 */
void vgpu_pf_timer(struct vgpu_pf *pf)
{
	pf->timers.armed_ns = 0;
	vgpu_pf_timers_run(pf);
	vgpu_pf_settle(pf);
}

/**
 * vgpu_pf_watchdog() - look whether an interrupt was lost
 * @pf: the PF
 */
void vgpu_pf_watchdog(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	service_interrupts(pf);
	vgpu_pf_run_engine_watch(pf);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_WATCHDOG, WATCHDOG_NS);
}

/**
 * vgpu_pf_report_policy() - the home was told a policy that is the lease holder's to decide
 * @pf: the PF
 * @vf: VF number; 0: all
 * @policy: what
 * @value: as the home was told
 */
void vgpu_pf_report_policy(struct vgpu_pf *pf, uint32_t vf, enum vgpu_pf_policy policy,
			   uint64_t value)
{
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_POLICY, vf, policy, value);
	vgpu_pf_settle(pf);
}

/**
 * vgpu_pf_set_max_gap() - how long a VF with work is off the engine at most, from now on
 * @pf: the PF
 * @max_gap_ms: 0: no limit
 */
void vgpu_pf_set_max_gap(struct vgpu_pf *pf, uint32_t max_gap_ms)
{
	pf->params.max_gap_ms = max_gap_ms;
	vgpu_pf_settle(pf);
}

/**
 * vgpu_pf_set_preempt_timeout() - how long a VF may take to leave the engine, from now on
 * @pf: the PF
 * @vf: VF number, 1..total
 * @timeout_us: 0: default
 *
 * Return: 0 or -EINVAL with a message.
 */
int vgpu_pf_set_preempt_timeout(struct vgpu_pf *pf, uint32_t vf, uint32_t timeout_us)
{
	int error = vgpu_pf_provision_set_preempt_timeout(pf, &pf->vfs[vf], timeout_us);

	if (!error)
		vgpu_pf_settle(pf);
	return error;
}

/**
 * vgpu_pf_stream_ready() - the stream's fd can be written or read again
 * @pf: the PF
 */
void vgpu_pf_stream_ready(struct vgpu_pf *pf)
{
	vgpu_pf_vf_state_ready(pf);
	vgpu_pf_settle(pf);
}

/* ---- the device goes ---- */

static void let_go(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	pf->device.is_attached = false;
	pf->whole_reset.is_lost |= pf->whole_reset.is_under_way;
	pf->whole_reset.is_under_way = false;
	pf->whole_reset.is_wanted = false;
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_DEVICE_LOST, 0, 0, 0);
	vgpu_pf_run_engine_stop(pf);
	vgpu_pf_run_account_stop(pf);
	vgpu_pf_bulk_abort(pf, -ENODEV);
	vgpu_pf_vf_state_abort(pf, -ENODEV);
	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		vgpu_pf_timer_clear(pf, id);
	vgpu_pf_inbox_settle(pf);
	vgpu_for_each_vf(pf, vf)
		vgpu_pf_inbox_lose(pf, vf);
	vgpu_pf_settle(pf);
}

/**
 * vgpu_pf_detach() - the device does not answer any more
 * @pf: the PF; the home has seen to it that the device does not reach our memory either
 */
void vgpu_pf_detach(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "device lost");
	let_go(pf);
}

/**
 * vgpu_pf_park() - the device is about to be reset by others, or to lose its power
 * @pf: the PF; the device does not use our memory any more
 *
 * The same as vgpu_pf_detach(), but nobody has to act.
 */
void vgpu_pf_park(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "device parked: it will be reset or lose its power");
	let_go(pf);
}

/**
 * vgpu_pf_give_up() - the device has not come back from its reset: it counts as lost
 * @pf: the PF; without a device when this returns
 *
 * The home is not asked first, so the device is taken off the bus here.
 */
void vgpu_pf_give_up(struct vgpu_pf *pf)
{
	vgpu_pf_device_stop_dma(pf);
	let_go(pf);
}

/**
 * vgpu_pf_leave() - the home ends in order; VFs stay in service for the core that comes next
 * @pf: the PF; the device does not use our memory any more
 *
 * Unlike vgpu_pf_detach() this loses nothing: the journal says what the next core has to know.
 */
void vgpu_pf_leave(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	if (!pf->device.is_attached)
		return;
	vgpu_pf_settle(pf);
	vgpu_pf_device_vsec_write(pf, GPUIOV_INTR_ENABLE, 0);
	vgpu_pf_device_write(pf, REG_VGPU_WAKE_ENABLE, 0);
	vgpu_pf_run_account_stop(pf);
	pf->device.is_attached = false;
	vgpu_for_each_vf(pf, vf)
		vgpu_pf_inbox_leave(pf, vf);
	vgpu_pf_run_engine_stop(pf);
	vgpu_pf_bulk_abort(pf, -ENODEV);
	vgpu_pf_vf_state_abort(pf, -ENODEV);
	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		vgpu_pf_timer_clear(pf, id);
	vgpu_pf_settle(pf);
}

/* ---- the device comes ---- */

static void enable(struct vgpu_pf *pf)
{
	uint32_t all = (uint32_t)((1ull << pf->device.total_vfs) - 1);

	vgpu_pf_run_account_start(pf);
	vgpu_pf_device_write(pf, REG_VGPU_WAKE_ENABLE, all);
	vgpu_pf_device_vsec_write(pf, GPUIOV_INTR_ENABLE, INTR_SWITCH | INTR_MAILBOX);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_WATCHDOG, WATCHDOG_NS);
}

/* a VF of the device that no journal knows: whatever it is, it ends here */
static void clear_unknown(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	memset(&vf->config, 0, sizeof(vf->config));
	memset(&vf->control, 0, sizeof(vf->control));
	memset(&vf->access, 0, sizeof(vf->access));
	vf->control.gates = UINT32_MAX;
	vf->state = VGPU_PF_VF_ABSENT;
	if (vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO)) {
		vgpu_pf_text_log(pf, VGPU_OS_LOG_WARNING,
				 "VF%u: in service but not in the "
				 "journal; its resources are taken back",
				 vf->number);
		vgpu_pf_vf_page_table_clear(pf, vf);
		vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_RESET,
					  HW_FIELD_MASK(VGPU_RESET, FLR));
	}
	vgpu_pf_doorbell_set(pf, vf, 0);
	vgpu_pf_control_set_gates(pf, vf);
}

static void adopt_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t status = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_STATUS);
	int error = 0;

	vf->attached = HW_GET(VGPU_STATUS, ATTACHED, status) != 0;
	vf->control.lost = false;
	/* a VF being scrubbed has no page table any more: all free units are scrubbed anyway */
	if (vf->state == VGPU_PF_VF_SCRUBBING) {
		vf->config.vram_bytes = 0;
		vf->scrub.stage = VGPU_VF_SCRUB_NONE;
		return;
	}
	if (vf->state != VGPU_PF_VF_ABSENT)
		error = vgpu_pf_vf_page_table_adopt(pf, vf);
	if (vf->state == VGPU_PF_VF_ABSENT || error) {
		clear_unknown(pf, vf);
		return;
	}
	vgpu_pf_range_set_dirty(&pf->vram, (uint8_t)vf->number);
	vf->config.cu_mask = vgpu_pf_compute_unit_get(pf, vf);
	vf->config.doorbell_pages = vgpu_pf_doorbell_get(pf, vf);
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "VF%u: adopted in %s, generation %u, %llu MiB",
			 vf->number, vgpu_pf_control_state_name(vf->state), vf->generation,
			 (unsigned long long)(vf->config.vram_bytes >> 20));
}

/* what was under way when the core before ended is taken up again */
static void resume_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_control_set_gates(pf, vf);
	if (vf->state == VGPU_PF_VF_SCRUBBING)
		vgpu_pf_scrub_begin(pf, vf);
	if (vf->state == VGPU_PF_VF_RESETTING)
		vgpu_pf_reset_begin(pf, vf, vf->last_error);
	if (vf->access.granted)
		vf->access.count++;
	vgpu_pf_guard_resume(pf, vf);
}

static void adopt_all(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_pf_vram_init(pf);
	enable(pf);
	vgpu_for_each_vf(pf, vf)
		adopt_vf(pf, vf);
	vgpu_for_each_vf(pf, vf)
		resume_vf(pf, vf);
	/* messages and resets that nobody served meanwhile */
	vgpu_pf_reset_function_event(pf);
	vgpu_pf_mailbox_service(pf);
	vgpu_pf_journal_mark(pf);
	vgpu_pf_run_engine_start(pf);
	vgpu_for_each_vf(pf, vf)
		vgpu_pf_full_access_resume(pf, vf);
}

static void reprogram_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->state == VGPU_PF_VF_SCRUBBING) {
		vgpu_pf_scrub_begin(pf, vf);
		return;
	}
	if (!vgpu_vf_is_provisioned(vf))
		return;
	if (vgpu_pf_provision_again(pf, vf)) {
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: could not be provisioned anew: %s",
				 vf->number, pf->requests.message);
		return;
	}
	/* the device has forgotten them */
	vf->control.gates = UINT32_MAX;
	if (vf->state == VGPU_PF_VF_STOPPED && vf->control.lost)
		vgpu_vf_post(vf, VGPU_VF_EVENT_DEVICE_BACK, VGPU_PF_REASON_NONE);
	if (vf->state == VGPU_PF_VF_RESETTING)
		vgpu_pf_reset_device_back(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
}

/* whatever VRAM held, it may hold something else now */
static void doubt_vram(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_pf_journal_doubt(pf);
	vgpu_pf_range_doubt(&pf->vram);
	vgpu_for_each_vf(pf, vf)
		vf->table_entries = VGPU_TABLE_ENTRIES_UNKNOWN;
}

/**
 * vgpu_pf_reprogram_all() - a device that has forgotten everything gets it back
 * @pf: the PF, probed
 */
void vgpu_pf_reprogram_all(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_pf_run_account_stop(pf);
	doubt_vram(pf);
	enable(pf);
	vgpu_for_each_vf(pf, vf)
		reprogram_vf(pf, vf);
	vgpu_pf_inbox_settle(pf);
	/* nobody told of what came meanwhile */
	vgpu_pf_reset_function_event(pf);
	vgpu_pf_mailbox_service(pf);
	vgpu_pf_journal_mark(pf);
	vgpu_pf_journal_mark_table(pf);
	vgpu_pf_run_engine_start(pf);
}

/* a smaller or different device cannot carry the VFs in memory */
static int check_same(struct vgpu_pf *pf, const struct vgpu_pf_device *device)
{
	const struct vgpu_pf_device *before = &pf->device;

	if (!pf->was_attached)
		return 0;
	if (device->total_vfs == before->total_vfs && device->vram_bytes == before->vram_bytes &&
	    device->aperture_bytes == before->aperture_bytes &&
	    device->cu_count == before->cu_count)
		return 0;
	return vgpu_pf_text_fail(pf, -ENODEV, "another device answers than before: start anew");
}

/* one that is still in the reset in which it was lost */
static int check_back(struct vgpu_pf *pf)
{
	if (!pf->whole_reset.is_lost || !vgpu_pf_device_reset_is_on(pf))
		return 0;
	vgpu_pf_device_stop_dma(pf);
	return vgpu_pf_text_fail(pf, -ENODEV, "the device is still in its reset");
}

/* false: it has forgotten everything, whatever its journal says */
static bool load_journal(struct vgpu_pf *pf)
{
	bool was_in_reset = pf->whole_reset.is_lost;

	pf->whole_reset.is_lost = false;
	return !was_in_reset && vgpu_pf_journal_load(pf);
}

/**
 * vgpu_pf_attach() - a device is there
 * @pf: the PF
 *
 * Return: 0, or -ENODEV, for which vgpu_pf_view_message() says why: not a device of ours, not the
 * one from before, or not yet back from its reset; nothing of what it answered is taken then.
 */
int vgpu_pf_attach(struct vgpu_pf *pf)
{
	struct vgpu_pf_device device = {.is_attached = true};
	int error = vgpu_pf_device_probe(pf, &device);
	bool is_known;

	if (!error)
		error = check_same(pf, &device);
	if (!error)
		error = check_back(pf);
	if (error)
		return error;
	pf->device = device;
	/* nobody knows what has become of the home's timer while there was no device */
	pf->timers.armed_ns = 0;
	doubt_vram(pf);
	is_known = load_journal(pf);
	if (pf->was_attached && !is_known)
		vgpu_pf_reprogram_all(pf);
	else
		adopt_all(pf); /* without a journal: all VFs are ABSENT, the device is cleared */
	if (pf->was_attached)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_DEVICE_BACK, 0, is_known, 0);
	pf->was_attached = true;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "attached: %u VFs, %llu MiB of VRAM, %u CUs",
			 pf->device.total_vfs, (unsigned long long)(pf->device.vram_bytes >> 20),
			 pf->device.cu_count);
	vgpu_pf_settle(pf);
	return 0;
}
