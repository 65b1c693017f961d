// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Resets the whole device, at the request of another file (pf->device_reset.is_due): vf/reset.c
 * requests a device reset if the FLR of a VF does not end in time, and run/engine.c requests one if
 * a broken engine does not become usable again. Every VF loses its state. When the device is back,
 * the core programs the VFs again.
 */
#include "pf-driver/core/top/parts.h"

/* time limit of a device reset, multiplied by params.time_scale */
#define DEVICE_RESET_MS 2000u

/* delay until the first poll, and between later polls */
#define RESET_POLL_FIRST_NS (100 * VGPU_NS_PER_US)
#define RESET_POLL_LAST_NS  (10 * VGPU_NS_PER_MS)

/* Begin a reset of the whole device, unless a reset is in progress. */
void vgpu_pf_device_reset_begin(struct vgpu_pf *pf)
{
	pf->device_reset.is_due = false;
	if (pf->device_reset.is_under_way)
		return;
	pf->device_reset.is_under_way = true;
	pf->device_reset.count++;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "resetting the whole device");
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_DEVICE_RESET, 0, pf->device_reset.count, 0);
	vgpu_pf_run_engine_stop(pf);
	vgpu_pf_bulk_abort(pf, -EIO);
	vgpu_pf_stream_abort(pf, -EIO);
	/* no VF is in the engine now, so carry out the events that waited for that */
	vgpu_pf_inbox_process(pf);
	vgpu_pf_reset_device_lost(pf);
	vgpu_pf_device_vsec_write(pf, GPUIOV_RESET_CONTROL, GPUIOV_RESET_DEVICE);
	pf->device_reset.deadline_ns =
		vgpu_pf_timer_now(pf) + vgpu_pf_timer_scaled_ns(pf, DEVICE_RESET_MS);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_DEVICE_RESET, RESET_POLL_FIRST_NS);
}

/*
 * Return: true if the device is in its reset, an FLR that the PF began is in progress, or the
 * device does not answer.
 */
bool vgpu_pf_device_reset_is_on(struct vgpu_pf *pf)
{
	return vgpu_pf_device_vsec_read(pf, GPUIOV_RESET_CONTROL) & GPUIOV_RESET_DEVICE;
}

/* declares the device lost, because its reset did not end in time */
static void abandon(struct vgpu_pf *pf)
{
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR,
			 "device reset did not finish in %u ms (ETIMEDOUT); the device is lost",
			 DEVICE_RESET_MS);
	vgpu_pf_declare_lost(pf);
}

/* Poll the reset of the device. When the device is back, program it again. */
void vgpu_pf_device_reset_poll(struct vgpu_pf *pf)
{
	if (vgpu_pf_device_reset_is_on(pf)) {
		if (vgpu_pf_timer_now(pf) < pf->device_reset.deadline_ns)
			vgpu_pf_timer_set(pf, VGPU_PF_TIMER_DEVICE_RESET, RESET_POLL_LAST_NS);
		else
			abandon(pf);
		return;
	}
	pf->device_reset.is_under_way = false;
	vgpu_pf_reprogram_all(pf);
	vgpu_pf_provision_continue(pf, 0);
	vgpu_pf_reset_answer_all(pf);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_DEVICE_BACK, 0, 0, 0);
}
