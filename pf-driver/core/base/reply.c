// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Replies to requests that returned -EINPROGRESS. The core collects the replies during a call. At
 * the end of the call, the core first writes the checkpoint, and then hands the replies to the
 * platform. So once a client has its reply, a crash of the core does not undo what the request
 * changed, unless the checkpoint could not be written.
 */
#include "pf-driver/core/base/parts.h"

/*
 * Record the end of a request. token 0: no reply is due. VGPU_PF_FINISHED (state.h) is more than
 * the number of requests that can end in one call, so no reply is dropped.
 */
void vgpu_pf_reply_add(struct vgpu_pf *pf, uint64_t token, int error, const char *message)
{
	struct vgpu_finished_request *finished;

	if (token == 0 || pf->requests.finished_count == VGPU_PF_FINISHED)
		return;
	finished = &pf->requests.finished[pf->requests.finished_count++];
	finished->token = token;
	finished->error = error;
	vgpu_pf_text_format(finished->message, sizeof(finished->message), "%s", message);
}

/* Report finished requests to the platform. The caller must first flush the checkpoint. */
void vgpu_pf_reply_flush(struct vgpu_pf *pf)
{
	uint32_t count = pf->requests.finished_count;

	pf->requests.finished_count = 0;
	for (uint32_t i = 0; i < count; i++)
		pf->os->ops->request_done(pf->os, pf->requests.finished[i].token,
					  pf->requests.finished[i].error,
					  pf->requests.finished[i].message);
}
