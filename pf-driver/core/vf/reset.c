// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: Reset of a VF
 *
 *   operator, guard, full access time-out          hang                    FLR by guest or VMM
 *        |                                          |                            |
 *   notify guest (2), WAIT_GUEST                    |        acknowledge FLR_PENDING, WAIT_FLR
 *        | READY_TO_RESET (201) or time-out         |                            |
 *        v                                          v                            |
 *     FLR, WAIT_FLR <-------------- notify guest (2)                             |
 *        | done               | not done in time                                 |
 *        |                    +--> notify all guests, reset of the whole device  |
 *        | after a hang: WAIT_GUEST (the engine is free already)                 |
 *        v                                                                       |
 *     write VBIOS, PF2VF; set gates <--------------------------------------------+
 *        |
 *        +--> FLR_NOTIFICATION_CMPL (3) if the guest has sent READY_TO_RESET (201);
 *             READY_TO_ACCESS_GPU (1) if it has sent REQ_GPU_RESET_ACCESS (5)
 *
 * Numbers in parentheses are mailbox messages (hw/mailbox.def). VBIOS and PF2VF are data for the
 * guest's driver in the VF's VRAM (resource/vbios.c, resource/pf2vf.c). WAIT_GUEST is the wait for
 * READY_TO_RESET, and WAIT_FLR is the wait until bit FLR of VGPU_RESET is clear. If the guest
 * requests the reset, or has no driver loaded, the reset begins with the FLR.
 *
 * The client is the VMM (such as QEMU) that opens the VF's function. The right column also applies
 * when the client closes the function. Bit FLR_PENDING of VGPU_RESET means that the device has
 * already reset the VF. WAIT_FLR then ends at once, unless an FLR that the PF began is in progress.
 *
 * WAIT_GUEST also ends if the client closes or resets the function. If the FLR is still to come,
 * the PF notifies a silent guest again after half of the time limit, because amdgpu ignores a
 * notification while its list of pending jobs still has a finished job. A guest that did not answer
 * in time may find the notification (2) in its mailbox later. If the guest then sends
 * READY_TO_RESET (201), the PF answers FLR_NOTIFICATION_CMPL (3) at once, without another FLR.
 *
 * A reset that is requested during a reset of the whole device waits until the device is back, and
 * then begins with the FLR, because the core has already notified the guest of the device reset.
 */
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

/* time limits of WAIT_GUEST and WAIT_FLR, multiplied by params.time_scale */
#define RESET_GUEST_MS 500u
#define RESET_FLR_MS   500u

/* delay until the next poll of an FLR: min(FIRST + time since the reset began / 4, LAST) */
#define RESET_POLL_FIRST_NS (100 * VGPU_NS_PER_US)
#define RESET_POLL_LAST_NS  (10 * VGPU_NS_PER_MS)

/* true for the reasons that are failures of a world switch */
static bool is_hang(enum vgpu_pf_reason reason)
{
	return reason >= VGPU_PF_REASON_IDLE_TIMEOUT && reason <= VGPU_PF_REASON_BAD_STATUS;
}

/* true if a guest or its VMM can cause a reset for this reason */
static bool can_guest_cause(enum vgpu_pf_reason reason)
{
	return reason == VGPU_PF_REASON_GUEST_REQUEST || reason == VGPU_PF_REASON_GUEST_FLR ||
	       reason == VGPU_PF_REASON_DETACH || reason == VGPU_PF_REASON_FULL_ACCESS_TIMEOUT ||
	       is_hang(reason);
}

/* true if the device has done the FLR already, because the client reset or closed the function */
static bool is_done_by_device(enum vgpu_pf_reason reason)
{
	return reason == VGPU_PF_REASON_GUEST_FLR || reason == VGPU_PF_REASON_DETACH;
}

static bool should_notify(const struct vgpu_vf *vf)
{
	return vf->control.driver_loaded && !vf->reset.guest_notified &&
	       vf->reset.pending_message == 0 && !is_done_by_device(vf->reset.reason);
}

static void notify_guest(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->reset.guest_notified = true;
	vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FLR_NOTIFICATION, 0, 0);
}

/* sets the timer to half of RESET_GUEST_MS, the time that the guest has for its answer */
static void start_half_wait(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_RESET,
			     vgpu_pf_timer_scaled_ns(pf, RESET_GUEST_MS) / 2);
}

static void wait_for_guest(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->reset.stage = VGPU_VF_RESET_WAIT_GUEST;
	vf->reset.renotified = false;
	start_half_wait(pf, vf);
}

static void notify_again(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->reset.renotified = true;
	/* after the FLR, the guest's interrupts are off, so the guest would not see the message */
	if (!vf->reset.flr_done)
		notify_guest(pf, vf);
	start_half_wait(pf, vf);
}

static void wait_for_flr(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->reset.stage = VGPU_VF_RESET_WAIT_FLR;
	vf->reset.deadline_ns = vgpu_pf_timer_now(pf) + vgpu_pf_timer_scaled_ns(pf, RESET_FLR_MS);
	vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_RESET, RESET_POLL_FIRST_NS);
}

/* Begin the FLR. After a device reset, the caller must have programmed the VF's resources again. */
void vgpu_pf_reset_start_flr(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_RESET, HW_FIELD_MASK(VGPU_RESET, FLR));
	wait_for_flr(pf, vf);
}

/* answers a message that vgpu_pf_reset_take_message() returned; 0: no message to answer */
static void answer_guest(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t message)
{
	if (message == MAILBOX_REQ_GPU_RESET_ACCESS)
		vgpu_pf_mailbox_grant_after_reset(pf, vf);
	else if (message == MAILBOX_READY_TO_RESET)
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FLR_NOTIFICATION_CMPL, 0, 0);
}

/*
 * treats the gates and the quantum in the device as unknown after an FLR: writes the gates now, and
 * makes run/engine.c write the quantum before the next run
 */
static void program_after_flr(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->control.gates = UINT32_MAX;
	vf->service.quantum_us = UINT32_MAX;
	vgpu_pf_control_set_gates(pf, vf);
}

static void acknowledge_flr(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_RESET,
				  HW_FIELD_MASK(VGPU_RESET, FLR_PENDING));
	program_after_flr(pf, vf);
}

static void complete(struct vgpu_vf *vf)
{
	vf->reset.stage = VGPU_VF_RESET_NONE;
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_RESET);
	vgpu_vf_post(vf, VGPU_VF_EVENT_RESET_DONE, vf->reset.reason);
}

/* End the reset after the FLR: write VBIOS and PF2VF, set gates, report, answer the guest. */
void vgpu_pf_reset_end(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_pf_event done = {
		.type = VGPU_PF_EVENT_RESET_DONE, .vf = vf->number, .arg = vf->reset.reason};
	uint32_t message;

	done.duration_ns = vgpu_pf_timer_now(pf) - vf->reset.started_ns;
	vf->reset.unanswered = vf->reset.guest_notified && !vf->reset.guest_ready;
	message = vgpu_pf_reset_take_message(vf);
	vgpu_pf_vbios_write(pf, vf);
	vgpu_pf_pf2vf_write(pf, vf);
	program_after_flr(pf, vf);
	if (!can_guest_cause(vf->reset.reason) || vgpu_pf_notify_allows(pf, vf))
		vgpu_pf_event_push(pf, &done);
	answer_guest(pf, vf, message);
}

static void handle_flr_done(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->reset.flr_done = true;
	if (is_hang(vf->reset.reason) && vf->reset.guest_notified && !vf->reset.guest_ready)
		wait_for_guest(pf, vf);
	else
		complete(vf);
}

static void poll_flr(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t value = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_RESET);
	uint64_t now = vgpu_pf_timer_now(pf);
	uint64_t elapsed = now - vf->reset.started_ns;

	if (!HW_GET(VGPU_RESET, FLR, value)) {
		handle_flr_done(pf, vf);
		return;
	}
	if (now < vf->reset.deadline_ns) {
		vgpu_pf_timer_set_vf(
			pf, vf, VGPU_VF_TIMER_RESET,
			vgpu_min_u64(RESET_POLL_FIRST_NS + elapsed / 4, RESET_POLL_LAST_NS));
		return;
	}
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: FLR did not finish in %u ms (ETIMEDOUT)",
			 vf->number, RESET_FLR_MS);
	pf->device_reset.is_due = true;
}

static void count_reset(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vf->reset.count++;
	vf->last_error = reason;
	if (reason == VGPU_PF_REASON_GUEST_REQUEST || reason == VGPU_PF_REASON_GUEST_FLR)
		vf->reset.guest_count++;
	if (!is_hang(reason))
		return;
	vf->reset.hang_count++;
	if (vgpu_pf_notify_allows(pf, vf))
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_HANG, vf->number, reason, 0);
}

static void begin_stages(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->reset.flr_done) {
		/*
		 * the device has already reset the VF, but an FLR that the PF began may still be in
		 * progress
		 */
		wait_for_flr(pf, vf);
		poll_flr(pf, vf);
		return;
	}
	if (should_notify(vf))
		notify_guest(pf, vf);
	if (vf->reset.guest_notified && !is_hang(vf->reset.reason))
		wait_for_guest(pf, vf);
	else
		vgpu_pf_reset_start_flr(pf, vf);
}

/* Begin the reset of a VF in RESETTING. The VF must have left the engine, except after a hang. */
void vgpu_pf_reset_begin(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	vf->reset.reason = reason;
	vf->reset.started_ns = vgpu_pf_timer_now(pf);
	vf->reset.flr_done = is_done_by_device(reason);
	/*
	 * during a reset of the device, unanswered is true if this guest was notified of the reset
	 * and has not answered yet
	 */
	vf->reset.guest_notified = pf->device_reset.is_under_way && vf->reset.unanswered;
	vf->reset.guest_ready = false;
	vf->reset.unanswered = false;
	/* acknowledge the FLR now, so that the device reports a further FLR separately */
	if (vf->reset.is_client_flr_pending)
		acknowledge_flr(pf, vf);
	vf->reset.is_client_flr_pending = false;
	count_reset(pf, vf, reason);
	if (!pf->device_reset.is_under_way)
		begin_stages(pf, vf);
}

/*
 * Post RESET, because the guest requests a reset. message: the request, which the end of the reset
 * will answer.
 */
void vgpu_pf_reset_request(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t message)
{
	vf->reset.pending_message = message;
	vgpu_pf_checkpoint_mark(pf);
	vgpu_vf_post(vf, VGPU_VF_EVENT_RESET, VGPU_PF_REASON_GUEST_REQUEST);
	vgpu_pf_guard_count(pf, vf, VGPU_GUARD_FLR);
}

/* Get the message that the end of the reset will answer. Return: enum mailbox_to_pf; 0: none. */
uint32_t vgpu_pf_reset_pending_message(const struct vgpu_vf *vf)
{
	return vf->reset.guest_ready ? MAILBOX_READY_TO_RESET : vf->reset.pending_message;
}

/*
 * As vgpu_pf_reset_pending_message(), and forget the message. The caller answers, defers or drops
 * the message.
 */
uint32_t vgpu_pf_reset_take_message(struct vgpu_vf *vf)
{
	uint32_t message = vgpu_pf_reset_pending_message(vf);

	vf->reset.guest_ready = false;
	vf->reset.pending_message = 0;
	return message;
}

/* Restart a reset that was in progress or pending when the checkpoint was written. */
void vgpu_pf_reset_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->state == VGPU_PF_VF_RESETTING)
		vgpu_pf_reset_begin(pf, vf, vf->last_error);
	else if (vf->reset.is_client_flr_pending)
		vgpu_vf_post(vf, VGPU_VF_EVENT_RESET,
			     vf->attached ? VGPU_PF_REASON_GUEST_FLR : VGPU_PF_REASON_DETACH);
	else if (vf->reset.pending_message)
		vgpu_vf_post(vf, VGPU_VF_EVENT_RESET, VGPU_PF_REASON_GUEST_REQUEST);
}

/* Handle READY_TO_RESET: the guest answers a notification, or requests a reset. */
void vgpu_pf_reset_guest_ready(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (pf->device_reset.is_under_way) {
		vf->reset.pending_message = MAILBOX_READY_TO_RESET;
		vf->reset.guest_ready = true;
		vgpu_pf_checkpoint_mark(pf);
		vf->reset.unanswered = false;
		return;
	}
	if (vf->state == VGPU_PF_VF_RESETTING) {
		vf->reset.guest_ready = true;
		vgpu_pf_checkpoint_mark(pf);
		if (vf->reset.stage != VGPU_VF_RESET_WAIT_GUEST)
			return;
		if (vf->reset.flr_done)
			complete(vf);
		else
			vgpu_pf_reset_start_flr(pf, vf);
		return;
	}
	if (vf->reset.unanswered) {
		vf->reset.unanswered = false;
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FLR_NOTIFICATION_CMPL, 0, 0);
		return;
	}
	if (vf->state != VGPU_PF_VF_PROVISIONED && vf->state != VGPU_PF_VF_READY &&
	    vf->state != VGPU_PF_VF_RUNNING) {
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
		return;
	}
	vgpu_pf_reset_request(pf, vf, MAILBOX_READY_TO_RESET);
}

/* Poll the FLR (WAIT_FLR), or notify a silent guest again and then stop waiting (WAIT_GUEST). */
void vgpu_pf_reset_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->state != VGPU_PF_VF_RESETTING)
		return;
	if (vf->reset.stage == VGPU_VF_RESET_WAIT_FLR) {
		poll_flr(pf, vf);
		return;
	}
	if (!vf->reset.renotified) {
		notify_again(pf, vf);
		return;
	}
	if (vgpu_pf_notify_allows(pf, vf))
		vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "VF%u: guest was not ready to reset in time",
				 vf->number);
	if (vf->reset.flr_done)
		complete(vf);
	else
		vgpu_pf_reset_start_flr(pf, vf);
}

/* Cancel the VF's reset, if any. Answer FAIL if the guest waits for the reset. */
void vgpu_pf_reset_cancel(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vgpu_pf_reset_take_message(vf))
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
	vf->reset.stage = VGPU_VF_RESET_NONE;
	vf->reset.unanswered = false;
	vf->reset.is_client_flr_pending = false;
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_RESET);
}

/* ends the wait for a guest that is gone or has reset its function: the FLR is done already */
static void stop_waiting(struct vgpu_vf *vf)
{
	if (vf->state != VGPU_PF_VF_RESETTING || vf->reset.stage != VGPU_VF_RESET_WAIT_GUEST)
		return;
	/* READY_TO_RESET of the next driver must not count as an answer to this notification */
	vf->reset.guest_notified = false;
	complete(vf);
}

/* handles a reset of the VF's function by its client, or the close of the function */
static void handle_client_reset(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason)
{
	if (vf->state == VGPU_PF_VF_PROVISIONED || vf->state == VGPU_PF_VF_READY ||
	    vf->state == VGPU_PF_VF_RUNNING) {
		/* RESET is pending already; later messages come from the next driver: keep them */
		if (vf->reset.is_client_flr_pending)
			return;
		vf->reset.pending_message = 0;
		vgpu_pf_mailbox_forget(pf, vf);
		vf->reset.is_client_flr_pending = true;
		vgpu_pf_checkpoint_mark(pf);
		vgpu_vf_post(vf, VGPU_VF_EVENT_RESET, reason);
	} else {
		acknowledge_flr(pf, vf);
		/* the driver that sent these messages is gone */
		(void)vgpu_pf_reset_take_message(vf);
		vgpu_pf_mailbox_forget(pf, vf);
		/* an FLR does not end a pause */
		if (vf->state == VGPU_PF_VF_PAUSED) {
			vgpu_vf_post(vf, VGPU_VF_EVENT_DRIVER_GONE, reason);
			vgpu_pf_stream_break(pf, vf);
			vgpu_pf_vbios_write(pf, vf);
			vgpu_pf_pf2vf_write(pf, vf);
		}
		stop_waiting(vf);
	}
	if (reason == VGPU_PF_REASON_GUEST_FLR)
		vgpu_pf_guard_count(pf, vf, VGPU_GUARD_FLR);
}

/* Check whether the VF's client has attached, detached or reset the VF, and handle the change. */
void vgpu_pf_reset_poll(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t status = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_STATUS);
	uint32_t reset = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_RESET);
	bool is_attached = HW_GET(VGPU_STATUS, ATTACHED, status) != 0;
	bool was_attached = vf->attached;

	/* all ones: the device is gone */
	if (status == UINT32_MAX || reset == UINT32_MAX)
		return;
	if (is_attached != was_attached) {
		vf->attached = is_attached;
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_ATTACH, vf->number, is_attached, 0);
	}
	if (HW_GET(VGPU_RESET, FLR_PENDING, reset))
		handle_client_reset(pf, vf,
				    was_attached && is_attached ? VGPU_PF_REASON_GUEST_FLR
								: VGPU_PF_REASON_DETACH);
	else if (was_attached && !is_attached && vf->control.driver_loaded)
		handle_client_reset(pf, vf, VGPU_PF_REASON_DETACH);
}

/* Poll all VFs, because the interrupt VF_FLR does not name the VF. */
void vgpu_pf_reset_poll_all(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		vgpu_pf_reset_poll(pf, vf);
}

/* true if the guest was notified of the reset in progress, and the message is in its box */
static bool is_notified(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_RESETTING && vf->reset.guest_notified &&
	       !vf->mailbox.out_pending;
}

/*
 * Notify the loaded drivers of a device reset, and carry out DEVICE_LOST for all VFs that are not
 * ABSENT. A driver that was notified already, or that waits for an answer, gets no notification.
 */
void vgpu_pf_reset_device_lost(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		bool is_loaded = vf->control.driver_loaded;
		uint32_t pending = vgpu_pf_reset_take_message(vf);
		bool is_due = is_loaded && !pending && !is_notified(vf);

		vgpu_pf_inbox_device_lost(pf, vf);
		/* notify only now, because DEVICE_LOST drops a message that waits for the box */
		if (is_due)
			notify_guest(pf, vf);
		/* set these members only now, because DEVICE_LOST may clear them */
		vf->reset.unanswered = is_loaded && !pending;
		vf->reset.pending_message = pending;
	}
}

/* Answer the guests that have waited for the device to come back. */
void vgpu_pf_reset_answer_all(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		/* vgpu_pf_reset_end() will answer the guests of the other VFs */
		if (vf->state != VGPU_PF_VF_RESETTING)
			answer_guest(pf, vf, vgpu_pf_reset_take_message(vf));
	}
}
