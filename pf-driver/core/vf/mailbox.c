// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Mailbox messages between the PF and the guests' drivers. The core acknowledges and counts every
 * message, and answers it if the driver waits for an answer. The core defers a message that comes:
 *
 *   REQ_GPU_INIT_ACCESS, REQ_GPU_FINI_ACCESS   while the VF is paused, is in reset or has pending
 *                                              events, while the device is lost or in reset, or
 *                                              while full access of another VF excludes this VF
 *   REQ_GPU_RESET_ACCESS                       while the VF is paused, or is stopped because the
 *                                              device is lost or in reset
 *   READY_TO_RESET                             as REQ_GPU_RESET_ACCESS, but not during a reset of
 *                                              the device, and not if the message answers an FLR
 *                                              notification
 *
 * A VF has at most one deferred message (deferred_request): a later one replaces an earlier one.
 * The core handles the message as soon as must_wait() is false, or answers FAIL after half of the
 * time for which the driver waits.
 *
 * Drivers acknowledge only some messages of the PF (is_acknowledged_by_drivers()). While such a
 * message is in the box (the mailbox registers of the VF), a message that drivers do not
 * acknowledge, such as an FLR notification, waits until the driver has acknowledged the message in
 * the box or OUTBOX_LIMIT_NS has passed. In all other cases, a new message replaces the message in
 * the box at once.
 */
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

/* longest deferral; longest wait for an acknowledgement; delay of a throttled guest's message */
#define ANSWER_LIMIT_NS	  (MAILBOX_GUEST_MSG_LIMIT_MS / 2 * VGPU_NS_PER_MS)  /* 3 s */
#define OUTBOX_LIMIT_NS	  (MAILBOX_GUEST_MSG_LIMIT_MS / 12 * VGPU_NS_PER_MS) /* 500 ms */
#define THROTTLE_DELAY_NS (MAILBOX_GUEST_ACK_LIMIT_MS / 4 * VGPU_NS_PER_MS)  /* 125 ms */
#define INIT_DATA_VERSION 1u /* dword 1 of REQ_GPU_INIT_DATA_READY */

/* HVVM_MBOX1 has two bits for each VF: its guest has sent a message, or has acknowledged one */
#define MBOX1_VALID(vf) (1u << (2 * ((vf)->number - 1)))
#define MBOX1_ACK(vf)	(2u << (2 * ((vf)->number - 1)))

/* selects the VF whose mailbox the PF's mailbox registers show */
static void select_box(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	vgpu_pf_device_write(pf, REG_NBIO_MAILBOX_INDEX, HW_PREP(MAILBOX_INDEX, VF, vf->number));
}

static bool is_acknowledged_by_drivers(uint32_t event)
{
	return event == MAILBOX_VF_READY_TO_ACCESS_GPU || event == MAILBOX_VF_QUERY_ALIVE ||
	       event == MAILBOX_VF_REQ_GPU_INIT_DATA_READY;
}

static void write_box(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	select_box(pf, vf);
	for (uint32_t i = 0; i < MAILBOX_DWORDS; i++)
		vgpu_pf_device_write(pf, REG_NBIO_MAILBOX_MSGBUF_TRN_DW0 + i, vf->mailbox.out[i]);
	vgpu_pf_device_write(pf, REG_NBIO_MAILBOX_CONTROL,
			     HW_FIELD_MASK(MAILBOX_CONTROL, TRN_VALID));
	vf->mailbox.out_pending = false;
	vf->mailbox.ack_expected = is_acknowledged_by_drivers(vf->mailbox.out[0]);
	if (vf->mailbox.ack_expected)
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_OUTBOX, OUTBOX_LIMIT_NS);
}

/*
 * Send a message to the guest's driver. event: enum mailbox_to_vf; dw1, dw2: dwords 1 and 2. While
 * the message waits for the box (see above), a later message may replace it.
 */
void vgpu_pf_mailbox_send(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t event, uint32_t dw1,
			  uint32_t dw2)
{
	vf->mailbox.out[0] = event;
	vf->mailbox.out[1] = dw1;
	vf->mailbox.out[2] = dw2;
	vf->mailbox.out[3] = 0;
	vf->mailbox.out_pending = true;
	/*
	 * a message that drivers acknowledge answers a newer request, so the driver no longer waits
	 * for the message in the box
	 */
	if (!vf->mailbox.ack_expected || is_acknowledged_by_drivers(event))
		write_box(pf, vf);
}

/* End the wait for the driver's acknowledgement, and send the waiting message, if any. */
void vgpu_pf_mailbox_outbox_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->mailbox.ack_expected = false;
	if (vf->mailbox.out_pending)
		write_box(pf, vf);
}

static void set_deferred(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t request)
{
	vf->mailbox.deferred_request = request;
	vgpu_pf_checkpoint_mark(pf);
}

static void defer(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t request)
{
	set_deferred(pf, vf, request);
	vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_ANSWER, ANSWER_LIMIT_NS);
}

/* true if the request must wait until the state of a VF or of the device changes */
static bool must_wait(const struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t request)
{
	return vf->inbox.events || vf->control.is_stopped_by_loss ||
	       vf->state == VGPU_PF_VF_PAUSED || vf->state == VGPU_PF_VF_RESETTING ||
	       pf->device_reset.is_under_way || !pf->device.is_attached ||
	       (request != MAILBOX_READY_TO_RESET && vgpu_pf_full_access_is_taken(pf, vf));
}

/*
 * After the reset that a guest requested by REQ_GPU_RESET_ACCESS, grant full access, or defer the
 * grant if full access of another VF excludes this VF.
 */
void vgpu_pf_mailbox_grant_after_reset(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	/* defer INIT_ACCESS, because a deferred REQ_GPU_RESET_ACCESS would reset the VF again */
	if (vgpu_pf_full_access_is_taken(pf, vf))
		defer(pf, vf, MAILBOX_REQ_GPU_INIT_ACCESS);
	else
		vgpu_pf_full_access_grant(pf, vf, MAILBOX_REQ_GPU_RESET_ACCESS);
}

static void handle_access(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t request)
{
	if (must_wait(pf, vf, request)) {
		defer(pf, vf, request);
		return;
	}
	if (vgpu_pf_control_allows(vf, VGPU_VF_EVENT_GRANT)) {
		vgpu_pf_full_access_grant(pf, vf, request);
		return;
	}
	vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
}

static void handle_access_request(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	vgpu_pf_guard_count(pf, vf, VGPU_GUARD_EXCLUSIVE);
	handle_access(pf, vf, message[0]);
}

static void handle_init_release(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	vgpu_pf_full_access_end(pf, vf);
	vgpu_pf_control_set_gates(pf, vf);
}

static void handle_fini_release(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	handle_init_release(pf, vf, message);
	if (vgpu_pf_control_allows(vf, VGPU_VF_EVENT_DRIVER_GONE))
		vgpu_vf_post(vf, VGPU_VF_EVENT_DRIVER_GONE, VGPU_PF_REASON_NONE);
}

/* true if a reset that the guest requests must wait until the VF resumes or the device is back */
static bool must_wait_for_reset(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_PAUSED || vf->control.is_stopped_by_loss;
}

static void handle_reset(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	if (must_wait_for_reset(vf)) {
		defer(pf, vf, message[0]);
		return;
	}
	if (vf->state == VGPU_PF_VF_STOPPED || vf->state == VGPU_PF_VF_MISMATCH ||
	    !vgpu_pf_control_allows(vf, VGPU_VF_EVENT_RESET)) {
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
		return;
	}
	vgpu_pf_reset_request(pf, vf, message[0]);
}

static void handle_init_data(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	if (!vgpu_vf_is_provisioned(vf) || vf->state == VGPU_PF_VF_SCRUBBING) {
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
		return;
	}
	vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_REQ_GPU_INIT_DATA_READY, INIT_DATA_VERSION, 0);
}

static void handle_error(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	if (vgpu_pf_notify_allows(pf, vf))
		vgpu_pf_event_simple(pf, VGPU_PF_EVENT_GUEST_ERROR, vf->number,
				     message[1] | (uint64_t)message[2] << 32,
				     message[3] | (uint64_t)message[0] << 32);
}

static void handle_ready_to_reset(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	/*
	 * An answer to a notification needs no new reset, so it does not wait. During a device
	 * reset, READY_TO_RESET does not wait either: the end of the device reset answers it.
	 */
	if (must_wait_for_reset(vf) && !vf->reset.unanswered && !pf->device_reset.is_under_way)
		defer(pf, vf, message[0]);
	else
		vgpu_pf_reset_guest_ready(pf, vf);
}

struct message_row {
	uint32_t number;
	void (*handle)(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message);
};

static const struct message_row message_table[] = {
	{MAILBOX_REQ_GPU_INIT_ACCESS, handle_access_request},
	{MAILBOX_REL_GPU_INIT_ACCESS, handle_init_release},
	{MAILBOX_REQ_GPU_FINI_ACCESS, handle_access_request},
	{MAILBOX_REL_GPU_FINI_ACCESS, handle_fini_release},
	{MAILBOX_REQ_GPU_RESET_ACCESS, handle_reset},
	{MAILBOX_REQ_GPU_INIT_DATA, handle_init_data},
	{MAILBOX_LOG_VF_ERROR, handle_error},
	{MAILBOX_READY_TO_RESET, handle_ready_to_reset},
	{MAILBOX_RAS_POISON, handle_error},
};

/* the number of MAILBOX_TO_PF rows, for the check that message_table has a row for each */
enum mailbox_row_count {
	MAILBOX_ROWS = 0
#define MAILBOX_TO_PF(name, number, answer, doc) +1
#define MAILBOX_TO_VF(name, number, doc)
#include "pf-driver/hw/mailbox.def"
#undef MAILBOX_TO_PF
#undef MAILBOX_TO_VF
};
HW_STATIC_ASSERT(VGPU_COUNT_OF(message_table) == MAILBOX_ROWS);

static void handle_message(struct vgpu_pf *pf, struct vgpu_vf *vf, const uint32_t *message)
{
	vf->mailbox.messages++;
	for (uint32_t i = 0; i < VGPU_COUNT_OF(message_table); i++) {
		if (message_table[i].number != message[0])
			continue;
		message_table[i].handle(pf, vf, message);
		return;
	}
	vf->mailbox.unknown++;
}

static void receive(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t message[MAILBOX_DWORDS];
	uint32_t control;

	select_box(pf, vf);
	control = vgpu_pf_device_read(pf, REG_NBIO_MAILBOX_CONTROL);
	/* all ones: the device is gone */
	if (!HW_GET(MAILBOX_CONTROL, RCV_VALID, control) || control == UINT32_MAX)
		return;
	for (uint32_t i = 0; i < MAILBOX_DWORDS; i++)
		message[i] = vgpu_pf_device_read(pf, REG_NBIO_MAILBOX_MSGBUF_RCV_DW0 + i);
	vgpu_pf_device_write(pf, REG_NBIO_MAILBOX_CONTROL, HW_FIELD_MASK(MAILBOX_CONTROL, RCV_ACK));
	handle_message(pf, vf, message);
	vgpu_pf_guard_count(pf, vf, VGPU_GUARD_INTERRUPT);
}

/* true if the message of a throttled guest must wait; then sets the timer that reads the message */
static bool is_too_early(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint64_t now = vgpu_pf_timer_now(pf);

	if (!vgpu_pf_guard_is_throttled(vf))
		return false;
	if (vf->mailbox.not_before_ns == 0)
		vf->mailbox.not_before_ns = now + THROTTLE_DELAY_NS;
	if (now >= vf->mailbox.not_before_ns) {
		vf->mailbox.not_before_ns = 0;
		return false;
	}
	vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_THROTTLE, vf->mailbox.not_before_ns - now);
	return true;
}

static void handle_acknowledgement(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_OUTBOX);
	vgpu_pf_mailbox_outbox_timer(pf, vf);
}

/* Handle the new messages and acknowledgements of all guests. */
void vgpu_pf_mailbox_service(struct vgpu_pf *pf)
{
	uint32_t changes = vgpu_pf_device_vsec_read(pf, GPUIOV_HVVM_MBOX1);
	uint32_t acks = 0;
	struct vgpu_vf *vf;

	/* a working device may have all ones in MBOX1, but not in the head of the capability */
	if (changes == 0 || vgpu_pf_device_vsec_read(pf, 0) == UINT32_MAX)
		return;
	vgpu_for_each_vf(pf, vf)
		acks |= changes & MBOX1_ACK(vf);
	/* clear the bits first: the loop may send messages, which guests acknowledge at once */
	if (acks)
		vgpu_pf_device_vsec_write(pf, GPUIOV_HVVM_MBOX1, acks);
	vgpu_for_each_vf(pf, vf) {
		if (acks & MBOX1_ACK(vf))
			handle_acknowledgement(pf, vf);
		if (!(changes & MBOX1_VALID(vf)) || is_too_early(pf, vf))
			continue;
		/* the message may come from a new driver: first check whether there was an FLR */
		vgpu_pf_reset_poll(pf, vf);
		receive(pf, vf);
	}
}

/* Read the message of a throttled guest, because the delay of this message is over. */
void vgpu_pf_mailbox_throttle_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_mailbox_service(pf);
}

/* Handle the deferred request, unless it must still wait. Return: true if one was handled. */
bool vgpu_pf_mailbox_handle_deferred(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t message[MAILBOX_DWORDS] = {vf->mailbox.deferred_request};

	if (vf->mailbox.deferred_request == 0 || must_wait(pf, vf, message[0]))
		return false;
	set_deferred(pf, vf, 0);
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_ANSWER);
	if (message[0] == MAILBOX_REQ_GPU_RESET_ACCESS)
		handle_reset(pf, vf, message);
	else if (message[0] == MAILBOX_READY_TO_RESET)
		vgpu_pf_reset_guest_ready(pf, vf);
	else
		handle_access(pf, vf, message[0]);
	return true;
}

/* Answer FAIL to a deferred request that has waited too long. */
void vgpu_pf_mailbox_answer_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->mailbox.deferred_request == 0)
		return;
	set_deferred(pf, vf, 0);
	vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
}

/* Restart the time limit of the deferred request of a VF that this core has taken over. */
void vgpu_pf_mailbox_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->mailbox.deferred_request)
		defer(pf, vf, vf->mailbox.deferred_request);
}

/*
 * Refuse the guest of a VF that is quarantined, released or in MISMATCH: drop the messages to the
 * guest, and answer the deferred request, if any, with FAIL.
 */
void vgpu_pf_mailbox_refuse(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	bool had_request = vf->mailbox.deferred_request != 0;

	vgpu_pf_mailbox_forget(pf, vf);
	if (had_request)
		vgpu_pf_mailbox_send(pf, vf, MAILBOX_VF_FAIL, 0, 0);
}

/*
 * Handle the loss of the device: drop the messages to the guest. If the end of the VF's reset would
 * have answered a message, this message becomes the deferred request. Otherwise the deferred
 * request, if any, stays. The time limit of the deferred request starts again.
 */
void vgpu_pf_mailbox_device_lost(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t reset = vgpu_pf_reset_take_message(vf);
	uint32_t request = reset ? reset : vf->mailbox.deferred_request;

	vgpu_pf_mailbox_forget(pf, vf);
	if (request)
		defer(pf, vf, request);
}

/* Drop the deferred request and the messages to the guest. */
void vgpu_pf_mailbox_forget(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->mailbox.deferred_request)
		set_deferred(pf, vf, 0);
	vf->mailbox.out_pending = false;
	vf->mailbox.ack_expected = false;
	vf->mailbox.not_before_ns = 0;
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_ANSWER);
	vgpu_pf_timer_clear_vf(vf, VGPU_VF_TIMER_OUTBOX);
}
