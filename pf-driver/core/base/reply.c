// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Replies to requests that returned -EINPROGRESS. The core collects them during a call. It hands
 * them to the platform at the end of the call, after it has written the checkpoint.
 */
#include "pf-driver/core/base/parts.h"

/* Record the end of a request that returned -EINPROGRESS; token 0: no client waits for it. */
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

/* Report finished requests to the platform; the checkpoint has been written. */
void vgpu_pf_reply_flush(struct vgpu_pf *pf)
{
	uint32_t count = pf->requests.finished_count;

	pf->requests.finished_count = 0;
	for (uint32_t i = 0; i < count; i++)
		pf->os->ops->request_done(pf->os, pf->requests.finished[i].token,
					  pf->requests.finished[i].error,
					  pf->requests.finished[i].message);
}
