// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scrub of a released VF:
 *
 *   device state -> VRAM -> verify -> event SCRUBBED -> SCRUB_DURABLE -> ABSENT
 *
 * The VF keeps its units of VRAM (16 MiB each) until SCRUB_DURABLE, by which the client reports
 * that it has recorded the scrub on disk. A unit is clean if it is known to hold zeroes; otherwise
 * it is dirty. After a start of the core, and after a loss or reset of the device, all units are
 * dirty. A dirty unit is scrubbed before a VF gets it. So a new core frees the units of a SCRUBBING
 * VF at once, and scrubs only the device state of this VF again.
 *
 * The core abandons a scrub that has failed three times. The VF then stays in SCRUBBING with a
 * last_error, and an event STATE from SCRUBBING to SCRUBBING reports this. RELEASE, SCRUB_DURABLE
 * or the return of a lost or reset device begins the scrub again.
 *
 * This file also implements VERIFY_ZERO: a client requests a check that the VRAM of a released VF
 * holds zeroes, and the device does the check.
 */
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/hw/vf_page_table.h"

#define SCRUB_ATTEMPTS 3u

static uint64_t units_to_bytes(uint32_t units)
{
	return (uint64_t)units << VGPU_VRAM_UNIT_SHIFT;
}

static void scrub_advance(struct vgpu_pf *pf, struct vgpu_vf *vf);
static void finish_verify(struct vgpu_pf *pf, int error, const char *message);

/* abandons the scrub; the VF keeps its units */
static void abandon(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->scrub.stage = VGPU_VF_SCRUB_NONE;
	vf->last_error = VGPU_PF_REASON_BAD_STATUS;
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_STATE, vf->number, vf->state, vf->state);
}

static void handle_scrub_failure(struct vgpu_pf *pf, struct vgpu_vf *vf, int error)
{
	if (error == -ENODEV || pf->device_reset.is_under_way) {
		/* the device is lost or in reset: the scrub begins again when the device is back */
		vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO,
				 "VF%u: scrub interrupted; it restarts when the device is back",
				 vf->number);
		vf->scrub.stage = VGPU_VF_SCRUB_NONE;
		return;
	}
	vf->scrub.failures++;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: scrub failed (%d), attempt %u", vf->number,
			 error, vf->scrub.failures);
	if (vf->scrub.failures >= SCRUB_ATTEMPTS) {
		abandon(pf, vf);
		return;
	}
	vf->scrub.stage = VGPU_VF_SCRUB_NONE;
	scrub_advance(pf, vf);
}

static void handle_step_done(struct vgpu_pf *pf, uint32_t owner, int error)
{
	struct vgpu_vf *vf = &pf->vfs[owner];
	struct vgpu_range range = {vf->scrub.next_unit, 0};

	if (vf->state != VGPU_PF_VF_SCRUBBING)
		return;
	if (error) {
		handle_scrub_failure(pf, vf, error);
		return;
	}
	/* next_unit is the first unit of the range that the device has just finished */
	if (vf->scrub.stage != VGPU_VF_SCRUB_STATE &&
	    vgpu_pf_range_next(&pf->vram, (uint8_t)vf->number, &range)) {
		if (vf->scrub.stage == VGPU_VF_SCRUB_VERIFY)
			vgpu_pf_range_set_clean(&pf->vram, range);
		vf->scrub.next_unit = range.first + range.count;
	}
	scrub_advance(pf, vf);
}

static void submit(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_bulk_op *op)
{
	int error = vgpu_pf_bulk_submit(pf, op);

	if (error)
		handle_scrub_failure(pf, vf, error);
}

/* submits the next range of the VF's units; returns false if this stage is done */
static bool submit_range(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t opcode)
{
	struct vgpu_range range = {vf->scrub.next_unit, 0};
	struct vgpu_bulk_op op = {.opcode = opcode, .owner = vf->number, .done = handle_step_done};

	if (!vgpu_pf_range_next(&pf->vram, (uint8_t)vf->number, &range))
		return false;
	vf->scrub.next_unit = range.first;
	op.bytes = units_to_bytes(range.count);
	op.src = op.dst = units_to_bytes(range.first);
	submit(pf, vf, &op);
	return true;
}

static void finish_scrub(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_pf_event event = {
		.type = VGPU_PF_EVENT_SCRUBBED, .vf = vf->number, .arg = vf->generation};

	vf->scrub.stage = VGPU_VF_SCRUB_DONE;
	vf->scrub.failures = 0;
	event.duration_ns = vf->scrub.verify_started_ns - vf->scrub.started_ns;
	event.arg2 = vgpu_pf_timer_now(pf) - vf->scrub.verify_started_ns;
	vgpu_pf_event_push(pf, &event);
	vgpu_pf_text_log(pf, VGPU_OS_LOG_INFO, "VF%u: scrubbed, generation %u", vf->number,
			 vf->generation);
}

/* submits the next operation of the scrub; ends the scrub after the last one */
static void scrub_advance(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	struct vgpu_bulk_op state = {.opcode = VGPU_OP_SCRUB_STATE,
				     .vf = vf->number,
				     .owner = vf->number,
				     .done = handle_step_done};

	if (vf->scrub.stage == VGPU_VF_SCRUB_NONE) {
		vf->scrub.stage = VGPU_VF_SCRUB_STATE;
		submit(pf, vf, &state);
		return;
	}
	if (vf->scrub.stage == VGPU_VF_SCRUB_STATE) {
		vf->scrub.stage = VGPU_VF_SCRUB_VRAM;
		vf->scrub.next_unit = 0;
		vf->scrub.started_ns = vgpu_pf_timer_now(pf);
	}
	if (vf->scrub.stage == VGPU_VF_SCRUB_VRAM) {
		if (submit_range(pf, vf, VGPU_OP_SCRUB_VRAM))
			return;
		vf->scrub.stage = VGPU_VF_SCRUB_VERIFY;
		vf->scrub.next_unit = 0;
		vf->scrub.verify_started_ns = vgpu_pf_timer_now(pf);
	}
	if (!submit_range(pf, vf, VGPU_OP_VERIFY_ZERO))
		finish_scrub(pf, vf);
}

/* Begin the scrub of a VF from its first stage. No operation of this scrub may be in progress. */
void vgpu_pf_scrub_again(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vf->scrub.stage = VGPU_VF_SCRUB_NONE;
	vf->scrub.failures = 0;
	/* from here on, last_error is the result of the scrub */
	vf->last_error = VGPU_PF_REASON_NONE;
	/* during a reset of the device, wait: after the reset, all scrubs begin again */
	if (!pf->device_reset.is_under_way)
		scrub_advance(pf, vf);
}

/*
 * Take page table and doorbells away from a VF in SCRUBBING, and begin its scrub. The VF must have
 * left the engine.
 */
void vgpu_pf_scrub_begin(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	/* after these two calls, the guest cannot reach the VF's VRAM and doorbells */
	vgpu_pf_vf_page_table_clear(pf, vf);
	vgpu_pf_doorbell_set(pf, vf, 0);
	vgpu_pf_scrub_again(pf, vf);
}

/* True if the core has abandoned the scrub of a VF in SCRUBBING after SCRUB_ATTEMPTS failures. */
bool vgpu_pf_scrub_has_failed(const struct vgpu_vf *vf)
{
	return vf->state == VGPU_PF_VF_SCRUBBING && vf->scrub.stage == VGPU_VF_SCRUB_NONE &&
	       vf->scrub.failures >= SCRUB_ATTEMPTS;
}

/*
 * Free the VF's units, because the client has recorded the scrub. If the scrub has failed, begin it
 * again instead. Return: 0; -EINVAL if the VF is not in SCRUBBING; or -EBUSY if the scrub is not
 * finished or begins again. Errors have a message.
 */
int vgpu_pf_scrub_durable(struct vgpu_pf *pf, const struct vgpu_pf_call *call)
{
	struct vgpu_vf *vf = call->vf;

	if (vf->state != VGPU_PF_VF_SCRUBBING)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: is %s, not SCRUBBING", vf->number,
					 vgpu_pf_control_state_name(vf->state));
	if (vgpu_pf_scrub_has_failed(vf))
		vgpu_pf_scrub_again(pf, vf);
	if (vf->scrub.stage != VGPU_VF_SCRUB_DONE)
		return vgpu_pf_text_fail(pf, -EBUSY,
					 "VF%u: scrub is not finished; wait for event SCRUBBED",
					 vf->number);
	vf->scrub.stage = VGPU_VF_SCRUB_NONE;
	/* from here on, another VF may get the VRAM that VERIFY_ZERO has not checked yet */
	if (pf->verify.vf == vf->number)
		finish_verify(pf, -ECANCELED, "the VRAM was released while it was checked");
	vgpu_pf_vram_release(pf, vf);
	vgpu_vf_post(vf, VGPU_VF_EVENT_SCRUB_DURABLE, VGPU_PF_REASON_NONE);
	return 0;
}

static void handle_provision_step_done(struct vgpu_pf *pf, uint32_t owner, int error)
{
	struct vgpu_range range = {0, 0};

	/* the first dirty range is the one that vgpu_pf_scrub_units() has submitted */
	if (!error && vgpu_pf_range_next_dirty(&pf->vram, (uint8_t)owner, &range))
		vgpu_pf_range_set_clean(&pf->vram, range);
	if (error)
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR, "VF%u: VRAM could not be scrubbed (%d)",
				 owner, error);
	vgpu_pf_provision_continue(pf, error);
}

/*
 * Submit a scrub of the next range of dirty units of a VF that is being provisioned and has no page
 * table yet. When the scrub has ended, handle_provision_step_done() continues the provisioning.
 * Return: 0, -ENOENT if no unit is dirty, or an error of vgpu_pf_bulk_submit().
 */
int vgpu_pf_scrub_units(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct vgpu_range range = {0, 0};
	struct vgpu_bulk_op op = {.opcode = VGPU_OP_SCRUB_VRAM,
				  .owner = vf->number,
				  .done = handle_provision_step_done};

	if (!vgpu_pf_range_next_dirty(&pf->vram, (uint8_t)vf->number, &range))
		return -ENOENT;
	op.dst = units_to_bytes(range.first);
	op.bytes = units_to_bytes(range.count);
	return vgpu_pf_bulk_submit(pf, &op);
}

static int submit_verify(struct vgpu_pf *pf);

static void finish_verify(struct vgpu_pf *pf, int error, const char *message)
{
	pf->verify.vf = 0;
	vgpu_pf_reply_add(pf, pf->verify.token, error, message);
}

static const char *verify_message(int error)
{
	return error == -EUCLEAN ? "a byte of the VRAM is not zero, or the check failed"
				 : "the check was interrupted";
}

static void handle_verify_step_done(struct vgpu_pf *pf, uint32_t owner, int error)
{
	/* the answer belongs to an earlier check, which has ended */
	if (!pf->verify.vf || pf->verify.serial != owner)
		return;
	if (!error)
		error = submit_verify(pf);
	if (error == -EINPROGRESS)
		return;
	/* -EIO: a byte is not zero, the device refused the check, or a device reset ended it */
	if (error == -EIO && !pf->device_reset.is_under_way)
		error = -EUCLEAN;
	finish_verify(pf, error, error ? verify_message(error) : "");
}

/* starts the check of the next range; returns -EINPROGRESS, 0 after the last range, or an error */
static int submit_verify(struct vgpu_pf *pf)
{
	struct vgpu_bulk_op op = {.opcode = VGPU_OP_VERIFY_ZERO,
				  .owner = pf->verify.serial,
				  .done = handle_verify_step_done};
	int error;

	if (!vgpu_pf_range_next(&pf->vram, (uint8_t)pf->verify.vf, &pf->verify.range))
		return 0;
	op.src = units_to_bytes(pf->verify.range.first);
	op.bytes = units_to_bytes(pf->verify.range.count);
	error = vgpu_pf_bulk_submit(pf, &op);
	return error ? error : -EINPROGRESS;
}

/*
 * Start the device's check that the VRAM of a SCRUBBING VF holds zeroes. A VF without VRAM, such as
 * an ABSENT VF, passes. Return: 0 if the VF has no VRAM; -EINPROGRESS; -EBUSY if a check is in
 * progress, the VF is being provisioned or the device is being reset; or another error. Errors have
 * a message.
 *
 * Errors of the later reply: -EUCLEAN if a byte is not zero, or the device refused the check;
 * -ECANCELED if SCRUB_DURABLE freed the VRAM before all of it was read; -EIO, -ENODEV or -ETIMEDOUT
 * if the device was reset, was lost or took too long; -EBUSY if the queue of resource/bulk.c was
 * full.
 */
int vgpu_pf_scrub_verify(struct vgpu_pf *pf, const struct vgpu_pf_call *call)
{
	struct vgpu_vf *vf = call->vf;
	struct vgpu_range none = {0, 0};
	int error;

	if (vf->state != VGPU_PF_VF_SCRUBBING && vf->state != VGPU_PF_VF_ABSENT)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: is %s; only released VRAM is checked",
					 vf->number, vgpu_pf_control_state_name(vf->state));
	if (pf->verify.vf)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u is being verified; try again",
					 pf->verify.vf);
	if (pf->device_reset.is_under_way)
		return vgpu_pf_text_fail(pf, -EBUSY, "the device is being reset; try again");
	/* its units may be dirty, and it may get them before all of them are read */
	if (pf->provision.vf == vf->number)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u is being provisioned; try again",
					 vf->number);
	pf->verify.vf = vf->number;
	pf->verify.serial++;
	pf->verify.token = call->token;
	pf->verify.range = none;
	error = submit_verify(pf);
	if (error != -EINPROGRESS)
		pf->verify.vf = 0;
	return error;
}
