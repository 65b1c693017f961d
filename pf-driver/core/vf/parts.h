/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions for the life of a VF: provisioning, states and events, mailbox messages, full access,
 * resets, limits on the guest, scrub, SAVE and RESTORE, and the checkpoint. They are grouped by
 * file; each function is documented where it is defined.
 */
#ifndef VGPU_CORE_VF_PARTS_H
#define VGPU_CORE_VF_PARTS_H

#include "pf-driver/core/run/parts.h"

VGPU_C_BEGIN

/* provision.c: the resources of a VF, all or none */
int vgpu_pf_provision_request(struct vgpu_pf *pf, const struct vgpu_pf_call *call);
int vgpu_pf_provision_again(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_provision_continue(struct vgpu_pf *pf, int error);
void vgpu_pf_provision_cancel(struct vgpu_pf *pf, uint64_t token);
void vgpu_pf_provision_free(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* control.c: the life cycle */
void vgpu_pf_control_step(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			  enum vgpu_pf_reason reason);
bool vgpu_pf_control_allows(const struct vgpu_vf *vf, enum vgpu_vf_event event);
int vgpu_pf_control_set_gates(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* one cell of the table in control.c: the reaction to an event in a state */
struct vgpu_control_cell {
	uint8_t to; /* the new state, enum vgpu_pf_vf_state */
	/* called after the VF has moved to the new state; NULL: the event is impossible */
	void (*enter)(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason);
};
const struct vgpu_control_cell *vgpu_pf_control_cell(uint32_t state, uint32_t event);

/* inbox.c: events of a VF that are posted but not yet carried out */
void vgpu_pf_inbox_process(struct vgpu_pf *pf);
int vgpu_pf_inbox_request(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			  uint64_t token);
void vgpu_pf_inbox_abort(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_inbox_device_lost(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* mailbox.c: messages between the PF and the guest's driver */
void vgpu_pf_mailbox_service(struct vgpu_pf *pf);
void vgpu_pf_mailbox_send(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t event, uint32_t dw1,
			  uint32_t dw2);
void vgpu_pf_mailbox_grant_after_reset(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_mailbox_handle_deferred(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_refuse(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_device_lost(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_forget(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_throttle_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_answer_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_outbox_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* full_access.c: the time in which the guest's driver may write all registers */
void vgpu_pf_full_access_grant(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t request);
void vgpu_pf_full_access_begin(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_full_access_is_taken(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_full_access_prevents_resume(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_full_access_is_open(const struct vgpu_vf *vf);
void vgpu_pf_full_access_end(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_full_access_suspend(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_full_access_resume(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_full_access_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* reset.c: resets of one VF */
void vgpu_pf_reset_begin(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason);
void vgpu_pf_reset_start_flr(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_request(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t message);
uint32_t vgpu_pf_reset_pending_message(const struct vgpu_vf *vf);
uint32_t vgpu_pf_reset_take_message(struct vgpu_vf *vf);
void vgpu_pf_reset_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_guest_ready(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_end(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_cancel(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_poll(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_poll_all(struct vgpu_pf *pf);
void vgpu_pf_reset_device_lost(struct vgpu_pf *pf);
void vgpu_pf_reset_answer_all(struct vgpu_pf *pf);

/* guard.c: limits on what a guest may cause */
void vgpu_pf_guard_init(struct vgpu_vf *vf, const uint32_t limits[VGPU_GUARD_KINDS]);
int vgpu_pf_guard_check(struct vgpu_pf *pf, const uint32_t limits[VGPU_GUARD_KINDS]);
void vgpu_pf_guard_count(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_guard_kind kind);
uint32_t vgpu_pf_guard_in_window(struct vgpu_pf *pf, const struct vgpu_vf *vf,
				 enum vgpu_guard_kind kind);
bool vgpu_pf_guard_is_throttled(const struct vgpu_vf *vf);
void vgpu_pf_guard_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_guard_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_guard_clear(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* scrub.c: scrub of a released VF, and VERIFY_ZERO, a check that its VRAM is zero */
void vgpu_pf_scrub_begin(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_scrub_has_failed(const struct vgpu_vf *vf);
void vgpu_pf_scrub_again(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_scrub_units(struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_scrub_durable(struct vgpu_pf *pf, const struct vgpu_pf_call *call);
int vgpu_pf_scrub_verify(struct vgpu_pf *pf, const struct vgpu_pf_call *call);

/* stream.c: SAVE and RESTORE */
int vgpu_pf_stream_save(struct vgpu_pf *pf, const struct vgpu_pf_call *call);
int vgpu_pf_stream_restore(struct vgpu_pf *pf, const struct vgpu_pf_call *call);
int vgpu_pf_stream_begin(struct vgpu_pf *pf, enum vgpu_stream_kind kind, uint32_t vf,
			 struct vgpu_pf_stream *request, uint64_t token);
void vgpu_pf_stream_move(struct vgpu_pf *pf);
void vgpu_pf_stream_advance(struct vgpu_pf *pf);
bool vgpu_pf_stream_is_restoring(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_stream_is_partly_restored(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_stream_break(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_stream_forget(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_stream_abort(struct vgpu_pf *pf, int error);

/* checkpoint.c: the records in PF VRAM from which a new core continues */
void vgpu_pf_checkpoint_mark(struct vgpu_pf *pf);
void vgpu_pf_checkpoint_invalidate(struct vgpu_pf *pf);
void vgpu_pf_checkpoint_flush(struct vgpu_pf *pf);
bool vgpu_pf_checkpoint_load(struct vgpu_pf *pf);

VGPU_C_END

#endif
