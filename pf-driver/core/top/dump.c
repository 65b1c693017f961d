// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Handles the operation DUMP, which writes a text for bug reports: device, engine, every VF, and
 * the last life cycle transitions of VFs. pf.h documents the functions for platforms.
 */
#include "pf-driver/core/top/parts.h"

struct dump_text {
	char *text;
	uint32_t bytes, used; /* bytes: size of text; used: characters in text, without the NUL */
};

/* appends formatted text; cuts off what does not fit */
static void put(struct dump_text *dump, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct dump_text *dump, const char *format, ...)
{
	va_list args;

	if (dump->used + 1 >= dump->bytes)
		return;
	va_start(args, format);
	dump->used += vgpu_pf_text_vformat(dump->text + dump->used, dump->bytes - dump->used,
					   format, args);
	va_end(args);
}

static void put_device(struct dump_text *dump, struct vgpu_pf *pf)
{
	const struct vgpu_pf_device *device = &pf->device;

	put(dump, "device: attached %u, %u VFs, VRAM %llu MiB, aperture %llu MiB, %u CUs\n",
	    device->is_attached, device->total_vfs, LLU(device->vram_bytes >> 20),
	    LLU(device->aperture_bytes >> 20), device->cu_count);
	put(dump, "VRAM: %u units free of %u\n", vgpu_pf_range_free_units(&pf->vram),
	    pf->vram.count);
	put(dump, "device resets %llu; bulk: %u queued; stream: kind %u of VF%u, %llu bytes\n",
	    LLU(pf->device_reset.count), pf->bulk.used, pf->stream.kind, pf->stream.vf,
	    LLU(pf->stream.bytes));
}

static const char *pending_event_name(const struct vgpu_vf *vf)
{
	return vgpu_pf_control_event_name(vgpu_vf_severest(vf->inbox.events));
}

static void put_vf(struct dump_text *dump, struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	put(dump,
	    "VF%u: %s, generation %u, VRAM %llu MiB, CUs 0x%llx, attached %u, driver %u, "
	    "full access %u, gates 0x%x\n",
	    vf->number, vgpu_pf_control_state_name(vf->state), vf->generation,
	    LLU(vf->config.vram_bytes >> 20), LLU(vf->config.cu_mask), vf->attached,
	    vf->control.driver_loaded, vf->access.granted, vf->control.gates);
	put(dump, "  service %llu ns, switches %llu, lag %lld ns, overruns %llu (max %llu ns)\n",
	    LLU(vf->service.ns), LLU(vf->service.switches),
	    (long long)vgpu_pf_run_share_lag(pf, vf), LLU(vf->service.overruns),
	    LLU(vf->service.overrun_max_ns));
	if (vf->contract.terms.budget_ns || vf->contract.terms.rate_ppm)
		put(dump,
		    "  contract: %llu ns in %llu ns, left %lld ns until %llu ns; cap %u ppm, "
		    "burst %llu ns, left %lld ns, throttled %u; priority class %u\n",
		    LLU(vf->contract.terms.budget_ns), LLU(vf->contract.terms.period_ns),
		    (long long)vf->contract.budget_ns, LLU(vf->contract.deadline_ns),
		    vf->contract.terms.rate_ppm, LLU(vf->contract.terms.burst_ns),
		    (long long)(vf->contract.tokens / VGPU_PF_RATE_MAX_PPM),
		    vf->contract.is_throttled, vf->contract.terms.priority_class);
	put(dump, "  pending %s, mismatches %u, last error %u, guard level %u\n",
	    pending_event_name(vf), vf->control.mismatches, vf->last_error, vf->guard.level);
	put(dump, "  resets %llu (guest %llu, hang %llu), stage %u; scrub stage %u, failures %u\n",
	    LLU(vf->reset.count), LLU(vf->reset.guest_count), LLU(vf->reset.hang_count),
	    vf->reset.stage, vf->scrub.stage, vf->scrub.failures);
	put(dump, "  mailbox %llu messages, %llu unknown, deferred request %u\n",
	    LLU(vf->mailbox.messages), LLU(vf->mailbox.unknown), vf->mailbox.deferred_request);
}

uint32_t vgpu_pf_dump_trace(struct vgpu_pf *pf, char *text, uint32_t bytes)
{
	uint32_t first = pf->trace.total > VGPU_PF_TRACE ? pf->trace.total - VGPU_PF_TRACE : 0;
	struct dump_text dump = {text, bytes, 0};

	for (uint32_t i = first; i < pf->trace.total; i++) {
		const struct vgpu_trace_line *line = &pf->trace.lines[i % VGPU_PF_TRACE];

		put(&dump, "  %llu ns VF%u: %s --%s--> %s\n", LLU(line->time_ns), line->vf,
		    vgpu_pf_control_state_name(line->from), vgpu_pf_control_event_name(line->event),
		    vgpu_pf_control_state_name(line->to));
	}
	return dump.used;
}

/* appends the text that another function writes */
static void put_part(struct dump_text *dump, struct vgpu_pf *pf,
		     uint32_t (*describe)(struct vgpu_pf *pf, char *text, uint32_t bytes))
{
	if (dump->used + 1 < dump->bytes)
		dump->used += describe(pf, dump->text + dump->used, dump->bytes - dump->used);
}

uint32_t vgpu_pf_dump_text(struct vgpu_pf *pf, char *text, uint32_t bytes)
{
	struct dump_text dump = {text, bytes, 0};
	struct vgpu_vf *vf;

	put(&dump, "vgpu PF core '%s', boot %llx\n", pf->params.name, LLU(pf->params.boot_id));
	put_device(&dump, pf);
	put_part(&dump, pf, vgpu_pf_run_describe);
	vgpu_for_each_vf(pf, vf)
		put_vf(&dump, pf, vf);
	put(&dump, "last transitions:\n");
	put_part(&dump, pf, vgpu_pf_dump_trace);
	return dump.used;
}

/*
 * Write the text of vgpu_pf_dump_text() to the request's stream. The core sets payload->bytes at
 * the end. Return: -EINPROGRESS, or -ENOMEM with a message.
 */
int vgpu_pf_dump_request(struct vgpu_pf *pf, struct vgpu_pf_stream *payload, uint64_t token)
{
	int error = vgpu_pf_stream_begin(pf, VGPU_STREAM_DUMP, 0, payload, token);

	if (error)
		return error;
	pf->stream.filled = vgpu_pf_dump_text(pf, pf->stream.buffer.cpu, pf->stream.buffer.bytes);
	vgpu_pf_stream_advance(pf);
	return -EINPROGRESS;
}
