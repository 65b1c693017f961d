// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Handles the requests of the uapi, in the same way for every platform. Each operation has one row:
 * its properties, how its struct names a VF, and its handler. This file checks the VF and most
 * properties before it calls the handler; the platform has already checked is_open_to_readers and
 * bytes. pf.h documents the functions for platforms.
 */
#include "pf-driver/core/top/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"

/* how the struct of an operation names a VF; after REQUEST_VF, the struct has a generation, too */
enum request_vf {
	REQUEST_NO_VF = 0,
	REQUEST_ANY_VF,	       /* the second member is a VF number; 0: any VF */
	REQUEST_VF,	       /* the second member is a VF number, not 0 */
	REQUEST_VF_GENERATION, /* as REQUEST_VF, and the third member is a generation; 0: any */
	REQUEST_VF_REF,	       /* as REQUEST_VF_GENERATION, in a struct vgpu_pf_vf_ref */
};

struct request_row {
	struct vgpu_pf_op_traits traits;
	enum request_vf vf;
	int (*handle)(struct vgpu_pf *pf, const struct vgpu_pf_call *request);
};

static uint64_t units_bytes(uint32_t units)
{
	return (uint64_t)units << VGPU_VRAM_UNIT_SHIFT;
}

static int get_info(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	struct vgpu_pf_info *info = request->payload;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->uapi_version = VGPU_PF_UAPI_VERSION;
	info->total_vfs = pf->device.total_vfs;
	info->platform = pf->params.platform;
	info->vram_bytes = pf->device.vram_bytes;
	info->vram_free_bytes = units_bytes(vgpu_pf_range_free_units(&pf->vram));
	info->vram_largest_free_bytes =
		vgpu_min_u64(info->vram_free_bytes, pf->device.aperture_bytes);
	info->vram_pf_bytes = VGPU_VRAM_UNIT_BYTES;
	info->vram_unit_bytes = VGPU_VRAM_UNIT_BYTES;
	info->vram_aperture_bytes = pf->device.aperture_bytes;
	info->doorbell_pages = pf->device.doorbell_pages;
	info->cu_count = pf->device.cu_count;
	if (pf->device.is_attached)
		info->device_time_ns = vgpu_pf_device_time_ns(pf);
	info->table_generation = pf->table_generation;
	info->boot_id = pf->params.boot_id;
	info->lease_held = pf->requests.lease_holder != 0;
	info->device_lost = !pf->device.is_attached;
	vgpu_pf_run_account_info(pf, info);
	info->device_resets = pf->device_reset.count;
	memcpy(info->name, pf->params.name, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = 0;
	return 0;
}

static void fill_device_counters(struct vgpu_pf *pf, const struct vgpu_vf *vf,
				 struct vgpu_pf_vf *out)
{
	uint32_t status = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_STATUS);

	out->attached = HW_GET(VGPU_STATUS, ATTACHED, status);
	out->has_work = HW_GET(VGPU_STATUS, HAS_WORK, status);
	out->doorbells_latched = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_DOORBELLS_LATCHED);
	out->faults = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_FAULTS);
	out->bad_packets = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_BAD_PACKETS);
	out->bad_accesses = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_BAD_ACCESSES);
	out->illegal_instructions = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_ILLEGAL_INSTR);
}

static void fill_counters(struct vgpu_pf *pf, const struct vgpu_vf *vf, struct vgpu_pf_vf *out)
{
	out->service_ns = vf->service.ns;
	out->reserved_service_ns = vf->service.reserved_ns;
	out->throttled_ns = vgpu_pf_run_contract_throttled_ns(pf, vf);
	out->wave_instructions = vf->service.wave_instructions;
	out->switches = vf->service.switches;
	out->overruns = vf->service.overruns;
	out->overrun_max_ns = vf->service.overrun_max_ns;
	out->flrs = vf->reset.count;
	out->guest_flrs = vf->reset.guest_count;
	out->hangs = vf->reset.hang_count;
	out->full_access_count = vf->access.count;
	out->full_access_timeouts = vf->access.timeouts;
	out->mailbox_messages = vf->mailbox.messages;
	out->mailbox_unknown = vf->mailbox.unknown;
	for (uint32_t kind = 0; kind < VGPU_GUARD_KINDS; kind++)
		out->guard_events[kind] = vgpu_pf_guard_in_window(pf, vf, kind);
	out->guard_level = vf->guard.level;
}

static int get_vf(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	struct vgpu_pf_vf *out = request->payload;
	struct vgpu_vf *vf = request->vf;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->vf = vf->number;
	out->state = vf->state;
	out->generation = vf->generation;
	out->vram_bytes = vf->config.vram_bytes;
	vgpu_pf_vram_first(pf, vf, &out->vram_first_offset);
	out->cu_mask = vf->config.cu_mask;
	out->doorbell_pages = vf->config.doorbell_pages;
	out->attached = vf->attached;
	out->in_full_access = vf->access.granted;
	out->last_error = vf->last_error;
	memcpy(out->uuid, vf->config.uuid, sizeof(out->uuid));
	fill_counters(pf, vf, out);
	if (!pf->device.is_attached)
		return 0;
	fill_device_counters(pf, vf, out);
	if (vf->control.driver_loaded)
		vgpu_pf_pf2vf_read_guest(pf, vf, out);
	return 0;
}

static int release(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	struct vgpu_vf *vf = request->vf;

	/* an earlier RELEASE has succeeded, but its scrub has failed: begin the scrub again */
	if (vgpu_pf_scrub_has_failed(vf)) {
		vgpu_pf_scrub_again(pf, vf);
		return 0;
	}
	return vgpu_pf_inbox_request(pf, vf, VGPU_VF_EVENT_RELEASE, request->token);
}

static const enum vgpu_vf_event control_events[] = {
	[VGPU_PF_PAUSE] = VGPU_VF_EVENT_PAUSE,
	[VGPU_PF_RESUME] = VGPU_VF_EVENT_RESUME,
	[VGPU_PF_STOP] = VGPU_VF_EVENT_STOP,
	[VGPU_PF_RESET] = VGPU_VF_EVENT_RESET,
	[VGPU_PF_CLEAR_QUARANTINE] = VGPU_VF_EVENT_CLEAR_QUARANTINE,
};

static int control(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	struct vgpu_vf *vf = request->vf;
	uint32_t action = ((const struct vgpu_pf_control *)request->payload)->action;
	enum vgpu_vf_event event;

	if (action == 0 || action >= VGPU_COUNT_OF(control_events))
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: unknown action %u", vf->number,
					 action);
	event = control_events[action];
	if (event == VGPU_VF_EVENT_RESUME && vgpu_pf_stream_is_restoring(pf, vf))
		return vgpu_pf_text_fail(pf, -EBUSY, "VF%u: a RESTORE is under way", vf->number);
	if (event == VGPU_VF_EVENT_RESUME && vgpu_pf_full_access_prevents_resume(pf, vf))
		return vgpu_pf_text_fail(pf, -EBUSY,
					 "VF%u: full access of another VF excludes it; try again",
					 vf->number);
	if (event == VGPU_VF_EVENT_RESUME && !vf->control.driver_loaded)
		event = VGPU_VF_EVENT_RESUME_FRESH;
	return vgpu_pf_inbox_request(pf, vf, event, request->token);
}

static int get_run_table(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	vgpu_pf_run_tables_get(pf, request->payload);
	return 0;
}

static int dump(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	const struct vgpu_pf_stream *stream = request->payload;

	if (stream->vf || stream->generation)
		return vgpu_pf_text_fail(pf, -EINVAL,
					 "a dump is of the whole PF: vf and generation must be 0");
	return vgpu_pf_dump_request(pf, request->payload, request->token);
}

/* acquires or releases the policy lease; vgpu_pf_request_client_gone() releases it, too */
static int lease(struct vgpu_pf *pf, const struct vgpu_pf_call *request)
{
	const struct vgpu_pf_lease *params = request->payload;

	if (params->acquire > 1)
		return vgpu_pf_text_fail(pf, -EINVAL, "acquire must be 0 or 1");
	pf->requests.lease_holder = params->acquire ? request->client : 0;
	return 0;
}

#define READERS	  .is_open_to_readers = true
#define STREAM	  .has_stream = true
#define LEASE	  .is_leased = true
#define DEVICE	  .needs_device = true
#define PLATFORMS .is_handled_by_platform = true
#define ROW(name, type, vf, handle, ...)                                                           \
	{                                                                                          \
		{.op = VGPU_PF_OP_##name, .bytes = sizeof(struct type), __VA_ARGS__}, vf, handle   \
	}

static const struct request_row request_table[] = {
	ROW(GET_INFO, vgpu_pf_info, REQUEST_NO_VF, get_info, READERS),
	ROW(GET_VF, vgpu_pf_vf, REQUEST_VF, get_vf, READERS),
	ROW(PROVISION, vgpu_pf_provision, REQUEST_ANY_VF, vgpu_pf_provision_request, DEVICE),
	ROW(RELEASE, vgpu_pf_vf_ref, REQUEST_VF_REF, release, DEVICE),
	ROW(SCRUB_DURABLE, vgpu_pf_vf_ref, REQUEST_VF_REF, vgpu_pf_scrub_durable, DEVICE),
	ROW(CONTROL, vgpu_pf_control, REQUEST_VF_GENERATION, control, DEVICE),
	ROW(SET_RUN_TABLE, vgpu_pf_run_table, REQUEST_NO_VF, vgpu_pf_run_tables_set, LEASE, DEVICE),
	ROW(GET_RUN_TABLE, vgpu_pf_run_table, REQUEST_NO_VF, get_run_table, READERS),
	ROW(GET_EVENT_RING, vgpu_pf_event_ring_info, REQUEST_NO_VF, NULL, READERS, PLATFORMS),
	ROW(SAVE, vgpu_pf_stream, REQUEST_VF_GENERATION, vgpu_pf_stream_save, STREAM, DEVICE),
	ROW(RESTORE, vgpu_pf_stream, REQUEST_VF_GENERATION, vgpu_pf_stream_restore, STREAM, DEVICE),
	ROW(LEASE, vgpu_pf_lease, REQUEST_NO_VF, lease, LEASE),
	ROW(VERIFY_ZERO, vgpu_pf_vf_ref, REQUEST_VF_REF, vgpu_pf_scrub_verify, DEVICE),
	ROW(DUMP, vgpu_pf_stream, REQUEST_NO_VF, dump, STREAM),
	/* for ioctls only: on a socket, replies have the error text, and a close cancels */
	ROW(GET_ERROR, vgpu_pf_error, REQUEST_NO_VF, NULL, READERS, PLATFORMS),
	ROW(CANCEL, vgpu_pf_cancel, REQUEST_NO_VF, NULL, READERS, PLATFORMS),
};

static const struct request_row *find_row(uint32_t op)
{
	for (uint32_t i = 0; i < VGPU_COUNT_OF(request_table); i++)
		if (request_table[i].traits.op == op)
			return &request_table[i];
	return NULL;
}

const struct vgpu_pf_op_traits *vgpu_pf_request_traits(uint32_t op)
{
	const struct request_row *row = find_row(op);

	return row ? &row->traits : NULL;
}

static int check_vf(struct vgpu_pf *pf, const struct request_row *row, struct vgpu_pf_call *call)
{
	/* every struct that names a VF has the members that are read here at the same offsets */
	const struct vgpu_pf_vf_ref *ref = call->payload;

	if (row->vf == REQUEST_NO_VF)
		return 0;
	if ((ref->vf == 0 && row->vf != REQUEST_ANY_VF) || ref->vf > pf->device.total_vfs)
		return vgpu_pf_text_fail(pf, -ENOENT, "there is no VF%u; the device has %u",
					 ref->vf, pf->device.total_vfs);
	call->vf = &pf->vfs[ref->vf];
	if (row->vf == REQUEST_VF_REF && ref->reserved)
		return vgpu_pf_text_fail(pf, -EINVAL, "VF%u: the reserved field is not 0", ref->vf);
	if (row->vf > REQUEST_VF && ref->generation && ref->generation != call->vf->generation)
		return vgpu_pf_text_fail(pf, -ESTALE,
					 "VF%u: generation %u is over; the current one is %u",
					 ref->vf, ref->generation, call->vf->generation);
	return 0;
}

static int check_traits(struct vgpu_pf *pf, const struct request_row *row, uint64_t client)
{
	if (row->traits.is_handled_by_platform)
		return vgpu_pf_text_fail(pf, -EOPNOTSUPP,
					 "this platform does not offer operation %u",
					 row->traits.op);
	if (row->traits.is_leased && client && pf->requests.lease_holder &&
	    pf->requests.lease_holder != client)
		return vgpu_pf_text_fail(pf, -EBUSY, "another client holds the policy lease");
	if (row->traits.needs_device && !pf->device.is_attached)
		return vgpu_pf_text_fail(pf, -ENODEV, "the device is lost; waiting for it");
	if (row->traits.has_stream && pf->stream.kind != VGPU_STREAM_NONE)
		return vgpu_pf_text_fail(pf, -EBUSY, "another stream is under way; try again");
	return 0;
}

static int handle(struct vgpu_pf *pf, uint32_t op, struct vgpu_pf_call *request)
{
	const struct request_row *row = find_row(op);
	int error;

	pf->requests.message[0] = 0;
	if (!row)
		return vgpu_pf_text_fail(pf, -EOPNOTSUPP, "there is no operation %u", op);
	error = check_traits(pf, row, request->client);
	if (!error)
		error = check_vf(pf, row, request);
	return error ? error : row->handle(pf, request);
}

int vgpu_pf_request_run_for(struct vgpu_pf *pf, uint64_t client, uint32_t op, void *payload,
			    uint64_t token)
{
	struct vgpu_pf_call request = {.payload = payload, .token = token, .client = client};
	char message[sizeof(pf->requests.message)];
	int error = handle(pf, op, &request);

	/* keep the message of this request: the pending work may write others */
	memcpy(message, pf->requests.message, sizeof(message));
	vgpu_pf_do_pending(pf);
	memcpy(pf->requests.message, message, sizeof(message));
	return error;
}

bool vgpu_pf_request_client_gone(struct vgpu_pf *pf, uint64_t client)
{
	bool is_holder = pf->requests.lease_holder == client;

	if (is_holder)
		pf->requests.lease_holder = 0;
	return is_holder;
}

void vgpu_pf_request_cancel(struct vgpu_pf *pf, uint64_t token)
{
	struct vgpu_vf *vf;

	vgpu_pf_provision_cancel(pf, token);
	vgpu_for_each_vf(pf, vf)
		if (vf->inbox.token == token)
			vf->inbox.token = 0;
	if (pf->verify.token == token)
		pf->verify.token = 0;
	/* keep the token: the platform closes the file when the end of the stream is reported */
	if (pf->stream.kind != VGPU_STREAM_NONE && pf->stream.token == token)
		pf->stream.request = NULL;
	vgpu_pf_do_pending(pf);
}
