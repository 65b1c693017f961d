// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Provisioning gives a VF all its resources, or none. When a step fails, the core undoes that step
 * and all steps before it, in reverse order.
 *
 *   check -> claim VRAM -> scrub VRAM and page tables that are not known to hold zeroes (by the
 *         device, while the request is pending) -> steps[] -> PROVISIONED
 *
 * If the device is reset before steps[], the scrub begins again after the reset.
 */
#include "pf-driver/core/resource/pf_vram.h"
#include "pf-driver/core/vf/parts.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"

#define PROVISION_FLAGS ((uint32_t)VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS)

struct provision_step {
	const char *name; /* for messages */
	int (*apply)(struct vgpu_pf *pf, struct vgpu_vf *vf);
	/* NULL: nothing to undo */
	int (*undo)(struct vgpu_pf *pf, struct vgpu_vf *vf);
};

static int apply_doorbells(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	return vgpu_pf_doorbell_set(pf, vf, vf->config.doorbell_pages);
}

static int undo_doorbells(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	return vgpu_pf_doorbell_set(pf, vf, 0);
}

static int apply_compute_units(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	return vgpu_pf_device_write_bank64(pf, vf, REG_VGPU_VF0_CU_MASK_LO, vf->config.cu_mask);
}

static int undo_compute_units(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	return vgpu_pf_device_write_bank64(pf, vf, REG_VGPU_VF0_CU_MASK_LO, 0);
}

/* the last step: afterwards the guest may write to the VF's VRAM, so the VRAM counts as dirty */
static int apply_pf2vf(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	int error = vgpu_pf_pf2vf_write(pf, vf);

	vgpu_pf_range_set_dirty(&pf->vram, (uint8_t)vf->number);
	return error;
}

/* undoes a step that wrote to VRAM: a dirty unit is scrubbed before its next use (scrub.c) */
static int mark_vram_dirty(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_range_set_dirty(&pf->vram, (uint8_t)vf->number);
	return 0;
}

static const struct provision_step steps[] = {
	{"VF page table", vgpu_pf_vf_page_table_write, NULL},
	{"VRAM", vgpu_pf_vf_page_table_commit, vgpu_pf_vf_page_table_clear},
	{"doorbells", apply_doorbells, undo_doorbells},
	{"compute units", apply_compute_units, undo_compute_units},
	{"VBIOS", vgpu_pf_vbios_write, mark_vram_dirty},
	{"PF2VF", apply_pf2vf, mark_vram_dirty},
};

/* index of the step after "VRAM": apply_steps() begins here if the VF's page table is in place */
#define STEP_AFTER_VRAM 2u

static int apply_steps(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t first)
{
	for (uint32_t i = first; i < VGPU_COUNT_OF(steps); i++) {
		int error;

		pf->requests.message[0] = 0;
		error = steps[i].apply(pf, vf);
		if (!error)
			continue;
		if (!pf->requests.message[0])
			vgpu_pf_text_fail(pf, error, "VF%u: the device did not accept the %s (%d)",
					  vf->number, steps[i].name, error);
		/* undo the step that failed and all before it, also those before `first` */
		for (uint32_t undo = i + 1; undo > 0; undo--)
			if (steps[undo - 1].undo)
				steps[undo - 1].undo(pf, vf);
		return error;
	}
	return 0;
}

static struct vgpu_vf *find_absent(struct vgpu_pf *pf)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->state == VGPU_PF_VF_ABSENT)
			return vf;
	return NULL;
}

static struct vgpu_vf *choose_vf(struct vgpu_pf *pf, const struct vgpu_pf_provision *request)
{
	struct vgpu_vf *vf;

	if (request->vf == 0) {
		vf = find_absent(pf);
		if (!vf)
			vgpu_pf_text_fail(pf, -ENOSPC, "all %u VFs have resources; release one",
					  pf->device.total_vfs);
		return vf;
	}
	return &pf->vfs[request->vf];
}

static uint64_t all_cus(const struct vgpu_pf *pf)
{
	return pf->device.cu_count >= 64 ? UINT64_MAX : (1ull << pf->device.cu_count) - 1;
}

static int check_limits(struct vgpu_pf *pf, const struct vgpu_vf *vf,
			const struct vgpu_pf_provision *request)
{
	if (request->reserved)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: the reserved field is not 0",
					 vf->number);
	if (request->flags & ~PROVISION_FLAGS)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: unknown flags 0x%x", vf->number,
					 request->flags);
	if (request->preempt_timeout_us > VGPU_PF_PREEMPT_TIMEOUT_MAX_US)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: preempt_timeout_us %u; at most %u",
					 vf->number, request->preempt_timeout_us,
					 VGPU_PF_PREEMPT_TIMEOUT_MAX_US);
	if (request->full_access_timeout_ms > VGPU_PF_FULL_ACCESS_TIMEOUT_MAX_MS)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: full_access_timeout_ms %u; at most %u",
					 vf->number, request->full_access_timeout_ms,
					 VGPU_PF_FULL_ACCESS_TIMEOUT_MAX_MS);
	return vgpu_pf_guard_check(pf, request->guard_limits);
}

static int check(struct vgpu_pf *pf, const struct vgpu_vf *vf,
		 const struct vgpu_pf_provision *request)
{
	int error;

	if (vf->state != VGPU_PF_VF_ABSENT)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u: is %s, not ABSENT; release it first",
					 vf->number, vgpu_pf_control_state_name(vf->state));
	error = check_limits(pf, vf, request);
	if (error)
		return error;
	if (request->doorbell_pages > pf->device.doorbell_pages)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: %u doorbell pages; at most %u",
					 vf->number, request->doorbell_pages,
					 pf->device.doorbell_pages);
	if (request->cu_mask & ~all_cus(pf))
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: CU mask 0x%llx; the device has 0x%llx",
					 vf->number, LLU(request->cu_mask), LLU(all_cus(pf)));
	return 0;
}

static void store_config(struct vgpu_pf *pf, struct vgpu_vf *vf,
			 const struct vgpu_pf_provision *request)
{
	vf->config.vram_bytes = request->vram_bytes;
	vf->config.cu_mask = request->cu_mask ? request->cu_mask : all_cus(pf);
	vf->config.doorbell_pages =
		request->doorbell_pages ? request->doorbell_pages : pf->device.doorbell_pages;
	vf->config.preempt_timeout_us = request->preempt_timeout_us;
	vf->config.full_access_timeout_ms = request->full_access_timeout_ms;
	vf->config.flags = request->flags;
	memcpy(vf->config.uuid, request->uuid, sizeof(vf->config.uuid));
	vgpu_pf_guard_init(vf, request->guard_limits);
}

static void roll_back(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_vram_release(pf, vf);
	memset(&vf->config, 0, sizeof(vf->config));
}

/* resets the state that the previous provisioning of the VF left; keeps config and limits */
static void reset_state(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t limits[VGPU_GUARD_KINDS];

	memcpy(limits, vf->guard.limits, sizeof(limits));
	vgpu_pf_guard_init(vf, limits);
	memset(&vf->access, 0, sizeof(vf->access));
	memset(&vf->mailbox, 0, sizeof(vf->mailbox));
	memset(&vf->reset, 0, sizeof(vf->reset));
	memset(&vf->scrub, 0, sizeof(vf->scrub));
	memset(vf->timers_ns, 0, sizeof(vf->timers_ns));
	vgpu_pf_run_engine_reset_vf(pf, vf);
	vf->last_error = VGPU_PF_REASON_NONE;
}

static int finish(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	int error = apply_steps(pf, vf, 0);

	if (error) {
		roll_back(pf, vf);
		return error;
	}
	/* skip 0 on overflow: in a request, generation 0 means any */
	vf->generation = vf->generation + 1 ? vf->generation + 1 : 1;
	reset_state(pf, vf);
	vgpu_vf_post(vf, VGPU_VF_EVENT_PROVISION, VGPU_PF_REASON_NONE);
	return 0;
}

static bool is_clean(const struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_vram_is_clean(pf, vf) && vf->table_entries != VGPU_TABLE_ENTRIES_UNKNOWN;
}

static void handle_tables_cleared(struct vgpu_pf *pf, uint32_t owner, int error)
{
	if (!error)
		pf->vfs[owner].table_entries = 0;
	else
		vgpu_pf_text_log(pf, VGPU_OS_LOG_ERROR,
				 "VF%u: its page tables could not be cleared (%d)", owner, error);
	vgpu_pf_provision_continue(pf, error);
}

/* submits a scrub of the VF's page tables in PF VRAM, which the device does not use now */
static int clear_tables(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	const struct vgpu_bulk_op op = {.opcode = VGPU_OP_SCRUB_VRAM,
					.owner = vf->number,
					.dst = pf_vram_root(vf->number),
					.bytes = PF_VRAM_PAGE_TABLES_STRIDE,
					.done = handle_tables_cleared};

	return vgpu_pf_bulk_submit(pf, &op);
}

/* submits a scrub of the next dirty units of VRAM or, if there are none, of the page tables */
static int clean_next(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_vram_is_clean(pf, vf) ? clear_tables(pf, vf) : vgpu_pf_scrub_units(pf, vf);
}

/*
 * true while the device is in its reset, after which all units and page tables are dirty: the
 * pending PROVISION waits for the end of the reset
 */
static bool must_wait(const struct vgpu_pf *pf)
{
	return pf->device.is_attached && pf->device_reset.is_under_way;
}

/*
 * Give a VF its resources, and fill in the payload's vf and generation. The payload must stay valid
 * until the request is finished or cancelled. Return: 0; -EINPROGRESS if VRAM or page tables must
 * be scrubbed first, or the device is in its reset; or an error, which leaves the VF's resources as
 * they were. Errors have a message.
 */
int vgpu_pf_provision_request(struct vgpu_pf *pf, const struct vgpu_pf_call *call)
{
	struct vgpu_pf_provision *request = call->payload;
	struct vgpu_vf *vf = choose_vf(pf, request);
	int error;

	if (!vf)
		return -ENOSPC;
	if (pf->provision.vf)
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u is being provisioned; try again",
					 pf->provision.vf);
	error = check(pf, vf, request);
	if (!error)
		error = vgpu_pf_vram_claim(pf, vf, request->vram_bytes);
	if (error)
		return error;
	store_config(pf, vf, request);
	request->vf = vf->number;
	if (!must_wait(pf) && is_clean(pf, vf)) {
		error = finish(pf, vf);
		request->generation = vf->generation;
		return error;
	}
	error = must_wait(pf) ? 0 : clean_next(pf, vf);
	if (error) {
		roll_back(pf, vf);
		return error;
	}
	pf->provision.vf = vf->number;
	pf->provision.token = call->token;
	pf->provision.payload = request;
	return -EINPROGRESS;
}

/*
 * Continue the pending PROVISION, if any, because a scrub for this request has ended, or the reset
 * of the device has ended, or the device was detached. error: 0 or negative errno.
 */
void vgpu_pf_provision_continue(struct vgpu_pf *pf, int error)
{
	struct vgpu_vf *vf = &pf->vfs[pf->provision.vf];

	if (pf->provision.vf == 0 || must_wait(pf))
		return;
	pf->requests.message[0] = 0;
	if (!error && !is_clean(pf, vf)) {
		error = clean_next(pf, vf);
		if (!error)
			return;
	}
	if (error) {
		vgpu_pf_text_fail(pf, error,
				  "VF%u: its VRAM or page tables could not be scrubbed (%d)",
				  vf->number, error);
		roll_back(pf, vf);
	} else {
		error = finish(pf, vf);
	}
	if (pf->provision.payload)
		pf->provision.payload->generation = vf->generation;
	pf->provision.vf = 0;
	vgpu_pf_reply_add(pf, pf->provision.token, error, pf->requests.message);
}

/*
 * If the pending PROVISION has this token, forget its client and payload, which are gone. The core
 * provisions the VF nevertheless.
 */
void vgpu_pf_provision_cancel(struct vgpu_pf *pf, uint64_t token)
{
	if (pf->provision.vf && pf->provision.token == token) {
		pf->provision.payload = NULL;
		pf->provision.token = 0;
	}
}

/*
 * Program the VF's resources into a device that has lost its state or a part of it. If the device
 * still uses the VF's page table, the core neither writes nor commits the table again, because a
 * commit would replace the memory that a guest may have mapped. Return: 0, or an error with a
 * message.
 */
int vgpu_pf_provision_again(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	bool is_in_place = vgpu_pf_vf_page_table_is_live(pf, vf) &&
			   vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_FB_SIZE_MB) ==
				   (uint32_t)(vf->config.vram_bytes >> 20);

	return apply_steps(pf, vf, is_in_place ? STEP_AFTER_VRAM : 0);
}

/* Free the resources of a VF that is now ABSENT. Keep its generation: the next one must differ. */
void vgpu_pf_provision_free(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_device_write_bank64(pf, vf, REG_VGPU_VF0_CU_MASK_LO, 0);
	vgpu_pf_vram_release(pf, vf);
	memset(&vf->config, 0, sizeof(vf->config));
}
