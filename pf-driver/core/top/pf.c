// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The life cycle of the PF: start, loss and return of the device, adoption of VFs in service, and
 * the order of the pending work at the end of a call. pf.h documents the functions for platforms.
 * What an attach does depends on the checkpoint in the device's VRAM:
 *
 *   attach, valid checkpoint      the core adopts the VFs of the checkpoint whose page tables the
 *                                 device still uses; a reset or scrub that was in progress begins
 *                                 again, and so does a pause, stop, quarantine or release that this
 *                                 core carried out after the device was lost
 *   first attach, no checkpoint   all VFs become ABSENT, and the core clears the device
 *   later attach, no checkpoint   the device has lost its state, so the core programs the resources
 *                                 of the VFs again; a VF that DEVICE_LOST stopped becomes
 *                                 PROVISIONED, and the other VFs keep their state
 *   attach after the device was   as a later attach without a checkpoint, because the VFs in the
 *   lost in its reset             checkpoint have lost their state
 */
#include "pf-driver/core/top/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

#define WATCHDOG_NS VGPU_NS_PER_S

#define INTR_ENGINE                                                                                \
	(GPUIOV_INTR_GFX_CMD_COMPLETE | GPUIOV_INTR_GFX_VM_BUSY |                                  \
	 GPUIOV_INTR_GFX_QUANTUM_EXPIRED | GPUIOV_INTR_GFX_VM_IDLE)
#define INTR_GUESTS (GPUIOV_INTR_VF_FLR | GPUIOV_INTR_HVVM_MBOX_ACK | GPUIOV_INTR_HVVM_MBOX_VALID)

void vgpu_pf_init(struct vgpu_pf *pf, struct vgpu_os *os, const struct vgpu_pf_params *params)
{
	memset(pf, 0, sizeof(*pf));
	pf->os = os;
	pf->params = *params;
	for (uint32_t i = 0; i <= VGPU_PF_MAX_VFS; i++) {
		pf->vfs[i].number = i;
		pf->vfs[i].service.quantum_us = UINT32_MAX;
		pf->vfs[i].control.gates = UINT32_MAX;
	}
	vgpu_pf_event_init(pf);
}

/* handles events of the engine, then events of VFs, and then chooses the next VF to run */
static void advance_engine(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached) {
		vgpu_pf_inbox_process(pf);
		return;
	}
	if (pf->device_reset.is_due)
		vgpu_pf_device_reset_begin(pf);
	/* first the run log (run/account.c): it shows whether a VMM's reset emptied the engine */
	vgpu_pf_run_engine_poll(pf);
	vgpu_pf_inbox_process(pf);
	vgpu_pf_run_engine_decide(pf);
}

/*
 * Carry out the events of engine and VFs, and decide the next run. Then write the checkpoint, send
 * replies and notifications, and arm the timer.
 */
void vgpu_pf_do_pending(struct vgpu_pf *pf)
{
	advance_engine(pf);
	vgpu_pf_checkpoint_flush(pf);
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

/* handled in this order: for example, an FLR before the messages of the driver that loads next */
static const struct interrupt_row interrupt_table[] = {
	{GPUIOV_INTR_GFX_CMD_COMPLETE, vgpu_pf_run_switch_poll},
	{GPUIOV_INTR_GFX_QUANTUM_EXPIRED, vgpu_pf_run_engine_expired},
	{GPUIOV_INTR_VF_FLR, vgpu_pf_reset_poll_all},
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
	status &= INTR_ENGINE | INTR_GUESTS;
	if (status == 0)
		return;
	/* clear the bits first, so that an interrupt that comes meanwhile sets its bit again */
	vgpu_pf_device_vsec_write(pf, GPUIOV_INTR_STATUS, status);
	for (uint32_t i = 0; i < VGPU_COUNT_OF(interrupt_table); i++)
		if (status & interrupt_table[i].bits && pf->device.is_attached)
			interrupt_table[i].handle(pf);
}

void vgpu_pf_interrupt(struct vgpu_pf *pf)
{
	/* the run log is in host memory, so start the next run before slow reads of registers */
	advance_engine(pf);
	if (pf->device.is_attached)
		service_interrupts(pf);
	vgpu_pf_do_pending(pf);
}

void vgpu_pf_timer(struct vgpu_pf *pf)
{
	pf->timers.armed_ns = 0;
	vgpu_pf_timers_run(pf);
	vgpu_pf_do_pending(pf);
}

/* Handle interrupts that were lost, and set the timer for the next check. */
void vgpu_pf_watchdog(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	service_interrupts(pf);
	vgpu_pf_run_engine_watch(pf);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_WATCHDOG, WATCHDOG_NS);
}

void vgpu_pf_report_policy(struct vgpu_pf *pf, uint32_t vf, enum vgpu_pf_policy policy,
			   uint64_t value)
{
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_POLICY, vf, policy, value);
	vgpu_pf_do_pending(pf);
}

void vgpu_pf_set_max_gap(struct vgpu_pf *pf, uint32_t max_gap_ms)
{
	pf->params.max_gap_ms = max_gap_ms;
	vgpu_pf_do_pending(pf);
}

int vgpu_pf_set_preempt_timeout(struct vgpu_pf *pf, uint32_t vf, uint32_t timeout_us)
{
	if (timeout_us > VGPU_PF_PREEMPT_TIMEOUT_MAX_US)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: preempt_timeout_us %u; at most %u", vf,
					 timeout_us, VGPU_PF_PREEMPT_TIMEOUT_MAX_US);
	pf->vfs[vf].config.preempt_timeout_us = timeout_us;
	vgpu_pf_checkpoint_mark(pf);
	vgpu_pf_do_pending(pf);
	return 0;
}

void vgpu_pf_stream_ready(struct vgpu_pf *pf)
{
	vgpu_pf_stream_move(pf);
	vgpu_pf_do_pending(pf);
}

/* ---- loss of the device ---- */

static void detach_device(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	pf->device.is_attached = false;
	pf->device_reset.is_lost |= pf->device_reset.is_under_way;
	pf->device_reset.is_under_way = false;
	pf->device_reset.is_due = false;
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_DEVICE_LOST, 0, 0, 0);
	vgpu_pf_run_engine_stop(pf);
	vgpu_pf_run_account_stop(pf);
	vgpu_pf_bulk_abort(pf, -ENODEV);
	vgpu_pf_provision_continue(pf, -ENODEV);
	vgpu_pf_stream_abort(pf, -ENODEV);
	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		vgpu_pf_timer_clear(pf, id);
	vgpu_pf_inbox_process(pf);
	vgpu_for_each_vf(pf, vf)
		vgpu_pf_inbox_device_lost(pf, vf);
	vgpu_pf_do_pending(pf);
}

void vgpu_pf_surprise_remove(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "device lost");
	detach_device(pf);
}

void vgpu_pf_suspend(struct vgpu_pf *pf)
{
	if (!pf->device.is_attached)
		return;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "device suspended: it will be reset or lose power");
	detach_device(pf);
}

/*
 * Declare the device lost, because it has not come back from its reset. The platform does not know
 * this yet, so the core itself ends the PF's access to host memory.
 */
void vgpu_pf_declare_lost(struct vgpu_pf *pf)
{
	vgpu_pf_device_stop_dma(pf);
	detach_device(pf);
}

void vgpu_pf_shutdown(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	if (!pf->device.is_attached)
		return;
	vgpu_pf_do_pending(pf);
	vgpu_pf_device_vsec_write(pf, GPUIOV_INTR_ENABLE, 0);
	vgpu_pf_device_write(pf, REG_VGPU_WAKE_ENABLE, 0);
	vgpu_pf_run_account_stop(pf);
	/* from here on, the core writes neither gates nor the checkpoint, so VFs stay in service */
	pf->device.is_attached = false;
	vgpu_for_each_vf(pf, vf)
		vgpu_pf_inbox_abort(pf, vf);
	vgpu_pf_run_engine_stop(pf);
	vgpu_pf_bulk_abort(pf, -ENODEV);
	vgpu_pf_provision_continue(pf, -ENODEV);
	vgpu_pf_stream_abort(pf, -ENODEV);
	for (uint32_t id = 0; id < VGPU_PF_TIMERS; id++)
		vgpu_pf_timer_clear(pf, id);
	vgpu_pf_do_pending(pf);
}

/* ---- return of the device ---- */

static void enable_interrupts(struct vgpu_pf *pf)
{
	uint32_t all = (uint32_t)((1ull << pf->device.total_vfs) - 1);

	vgpu_pf_run_account_start(pf);
	vgpu_pf_device_write(pf, REG_VGPU_WAKE_ENABLE, all);
	vgpu_pf_device_vsec_write(pf, GPUIOV_INTR_ENABLE, INTR_ENGINE | INTR_GUESTS);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_WATCHDOG, WATCHDOG_NS);
}

/* makes a VF ABSENT and clears its resources: the checkpoint has none, or the adoption failed */
static void clear_unknown(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	memset(&vf->config, 0, sizeof(vf->config));
	memset(&vf->control, 0, sizeof(vf->control));
	memset(&vf->access, 0, sizeof(vf->access));
	vgpu_pf_reset_cancel(pf, vf);
	vf->inbox.events = 0;
	vf->control.gates = UINT32_MAX;
	vf->state = VGPU_PF_VF_ABSENT;
	if (vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO)) {
		vgpu_pf_text_log(
			pf, VGPU_OS_LOG_WARNING,
			"VF%u: in service but not in the checkpoint; its resources are released",
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
	vf->control.is_stopped_by_loss = false;
	/* a SCRUBBING VF has no page table; its units become free, and are scrubbed before use */
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
	vf->config.cu_mask = vgpu_pf_device_read_bank64(pf, vf, REG_VGPU_VF0_CU_MASK_LO);
	vf->config.doorbell_pages = HW_GET(
		VGPU_DOORBELLS, PAGES, vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_DOORBELLS));
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "VF%u: adopted in %s, generation %u, %llu MiB",
			 vf->number, vgpu_pf_control_state_name(vf->state), vf->generation,
			 LLU(vf->config.vram_bytes >> 20));
}

/* sets the gates; begins the VF's scrub, reset, guard timer and deferred request again, if any */
static void resume_vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_control_set_gates(pf, vf);
	if (vf->state == VGPU_PF_VF_SCRUBBING)
		vgpu_pf_scrub_begin(pf, vf);
	vgpu_pf_reset_adopt(pf, vf);
	if (vf->access.granted)
		vf->access.count++;
	vgpu_pf_guard_adopt(pf, vf);
	vgpu_pf_mailbox_adopt(pf, vf);
}

/* takes the device over, with the VFs of the checkpoint; without a checkpoint, clears the device */
static void adopt_all(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_pf_vram_init(pf);
	enable_interrupts(pf);
	vgpu_for_each_vf(pf, vf)
		adopt_vf(pf, vf);
	vgpu_for_each_vf(pf, vf)
		resume_vf(pf, vf);
	/* handle messages and resets that came while no core used the device */
	vgpu_pf_reset_poll_all(pf);
	vgpu_pf_mailbox_service(pf);
	vgpu_pf_checkpoint_mark(pf);
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
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: could not be provisioned again: %s",
				 vf->number, pf->requests.message);
		return;
	}
	/* the device has lost the state of the gates */
	vf->control.gates = UINT32_MAX;
	if (vf->state == VGPU_PF_VF_STOPPED && vf->control.is_stopped_by_loss)
		vgpu_vf_post(vf, VGPU_VF_EVENT_DEVICE_BACK, VGPU_PF_REASON_NONE);
	if (vf->state == VGPU_PF_VF_RESETTING)
		vgpu_pf_reset_start_flr(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
}

/* makes the core treat the contents of VRAM as unknown, because they may have changed */
static void invalidate_vram(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_pf_checkpoint_invalidate(pf);
	vgpu_pf_range_set_all_dirty(&pf->vram);
	vgpu_for_each_vf(pf, vf)
		vf->table_entries = VGPU_TABLE_ENTRIES_UNKNOWN;
}

/* Program the resources of all VFs into a device that has lost its state. */
void vgpu_pf_reprogram_all(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_pf_run_account_stop(pf);
	invalidate_vram(pf);
	enable_interrupts(pf);
	vgpu_for_each_vf(pf, vf)
		reprogram_vf(pf, vf);
	vgpu_pf_inbox_process(pf);
	/* handle messages and resets that came without an interrupt */
	vgpu_pf_reset_poll_all(pf);
	vgpu_pf_mailbox_service(pf);
	vgpu_pf_checkpoint_mark(pf);
	pf->checkpoint.is_table_dirty = true;
	vgpu_pf_run_engine_start(pf);
}

/* refuses a device that differs from the last one, because the VFs of this core do not fit it */
static int check_same(struct vgpu_pf *pf, const struct vgpu_pf_device *device)
{
	const struct vgpu_pf_device *before = &pf->device;

	if (!pf->was_attached)
		return 0;
	if (device->total_vfs == before->total_vfs && device->vram_bytes == before->vram_bytes &&
	    device->aperture_bytes == before->aperture_bytes &&
	    device->cu_count == before->cu_count)
		return 0;
	return vgpu_pf_text_fail(pf, -ENODEV,
				 "a different device answers than before: restart the PF driver");
}

/* refuses a device that was lost in a reset and is still in this reset */
static int check_reset_ended(struct vgpu_pf *pf)
{
	if (!pf->device_reset.is_lost || !vgpu_pf_device_reset_is_on(pf))
		return 0;
	/* the platform has allowed DMA before this attach: end it again */
	vgpu_pf_device_stop_dma(pf);
	return vgpu_pf_text_fail(pf, -ENODEV, "the device is still in its reset");
}

/* returns false if the device has no valid checkpoint, or was lost in its reset */
static bool load_checkpoint(struct vgpu_pf *pf)
{
	bool was_in_reset = pf->device_reset.is_lost;

	pf->device_reset.is_lost = false;
	return !was_in_reset && vgpu_pf_checkpoint_load(pf);
}

int vgpu_pf_attach(struct vgpu_pf *pf)
{
	struct vgpu_pf_device device = {.is_attached = true};
	int error = vgpu_pf_device_probe(pf, &device);
	bool is_known;

	if (!error)
		error = check_same(pf, &device);
	if (!error)
		error = check_reset_ended(pf);
	if (error)
		return error;
	pf->device = device;
	/* the platform may have stopped its timer while there was no device */
	pf->timers.armed_ns = 0;
	invalidate_vram(pf);
	is_known = load_checkpoint(pf);
	if (pf->was_attached && !is_known)
		vgpu_pf_reprogram_all(pf);
	else
		adopt_all(pf); /* first attach without a checkpoint: clears the device */
	if (pf->was_attached)
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_DEVICE_BACK, 0, is_known, 0);
	pf->was_attached = true;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "attached: %u VFs, %llu MiB of VRAM, %u CUs",
			 pf->device.total_vfs, LLU(pf->device.vram_bytes >> 20),
			 pf->device.cu_count);
	vgpu_pf_do_pending(pf);
	return 0;
}
