/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of the core offer to each other, grouped by file; each is documented where it is
 * defined. A file calls down its own concern and asks the others through these. Parts of struct
 * vgpu_vf are set by their own files, and by those that begin, restore, reset or end a VF as a
 * whole (pf.c, journal.c, control.c, reset.c). Homes include pf.h only; unit tests may include
 * this.
 */
#ifndef VGPU_CORE_PARTS_H
#define VGPU_CORE_PARTS_H

#include "pf-driver/core/pf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define vgpu_for_each_vf(pf, vf)                                                                   \
	for ((vf) = &(pf)->vfs[1]; (vf) <= &(pf)->vfs[(pf)->device.total_vfs]; (vf)++)

#define VGPU_VF_BIT(vf) (1u << ((vf)->number - 1))

/* device.c: registers and config space by name */
uint32_t vgpu_pf_device_read(struct vgpu_pf *pf, uint32_t reg);
int vgpu_pf_device_write(struct vgpu_pf *pf, uint32_t reg, uint32_t value);
uint32_t vgpu_pf_device_read_bank(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg);
int vgpu_pf_device_write_bank(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg,
			      uint32_t value);
uint64_t vgpu_pf_device_read_bank64(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t reg_lo);
uint32_t vgpu_pf_device_vsec_read(struct vgpu_pf *pf, uint32_t offset);
int vgpu_pf_device_vsec_write(struct vgpu_pf *pf, uint32_t offset, uint32_t value);
uint32_t vgpu_pf_device_scheduler_read(struct vgpu_pf *pf, uint32_t offset);
int vgpu_pf_device_scheduler_write(struct vgpu_pf *pf, uint32_t offset, uint32_t value);
void vgpu_pf_device_stop_dma(struct vgpu_pf *pf);
int vgpu_pf_device_probe(struct vgpu_pf *pf, struct vgpu_pf_device *device);
uint64_t vgpu_pf_device_time_ns(struct vgpu_pf *pf);

/* text.c */
uint32_t vgpu_pf_text_vformat(char *out, uint32_t bytes, const char *format, va_list args);
uint32_t vgpu_pf_text_format(char *out, uint32_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int vgpu_pf_text_fail(struct vgpu_pf *pf, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void vgpu_pf_text_log(struct vgpu_pf *pf, enum vgpu_os_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint32_t vgpu_pf_text_crc32c(uint32_t crc, const void *data, uint64_t bytes);

/* timer.c */
uint64_t vgpu_pf_timer_now(struct vgpu_pf *pf);
uint64_t vgpu_pf_timer_scaled_ms(const struct vgpu_pf *pf, uint64_t ms);
void vgpu_pf_timer_set(struct vgpu_pf *pf, enum vgpu_pf_timer_id id, uint64_t delay_ns);
void vgpu_pf_timer_clear(struct vgpu_pf *pf, enum vgpu_pf_timer_id id);
void vgpu_pf_timer_set_vf(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_timer id,
			  uint64_t delay_ns);
void vgpu_pf_timer_clear_vf(struct vgpu_vf *vf, enum vgpu_vf_timer id);
void vgpu_pf_timer_run(struct vgpu_pf *pf);
void vgpu_pf_timer_arm(struct vgpu_pf *pf);

/* event.c: the event ring */
void vgpu_pf_event_init(struct vgpu_pf *pf);
void vgpu_pf_event_push(struct vgpu_pf *pf, const struct vgpu_pf_event *event);
void vgpu_pf_event_simple(struct vgpu_pf *pf, enum vgpu_pf_event_type type, uint32_t vf,
			  uint64_t arg, uint64_t arg2);

/* request.c */
void vgpu_pf_request_finish(struct vgpu_pf *pf, uint64_t token, int error, const char *message);
void vgpu_pf_request_flush(struct vgpu_pf *pf);

/* journal.c */
void vgpu_pf_journal_mark(struct vgpu_pf *pf);
void vgpu_pf_journal_doubt(struct vgpu_pf *pf);
void vgpu_pf_journal_mark_table(struct vgpu_pf *pf);
void vgpu_pf_journal_flush(struct vgpu_pf *pf);
bool vgpu_pf_journal_load(struct vgpu_pf *pf);

/* vram.c */
void vgpu_pf_vram_init(struct vgpu_pf *pf);
int vgpu_pf_vram_claim(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t bytes);
void vgpu_pf_vram_release(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_vram_first(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t *offset);
int vgpu_pf_vram_read_vf(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t offset, void *data,
			 uint32_t bytes);
#define VGPU_VRAM_WORD_BYTES 8u
int vgpu_pf_vram_write_words(struct vgpu_pf *pf, uint64_t place, const uint8_t *data,
			     uint32_t bytes, const uint8_t *there, uint32_t known);
int vgpu_pf_vram_write_vf(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t offset,
			  const void *data, uint32_t bytes);

/* vf_page_table.c */
int vgpu_pf_vf_page_table_write(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_commit(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_clear(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_vf_page_table_clean(struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_vf_page_table_is_live(struct vgpu_pf *pf, const struct vgpu_vf *vf);
uint64_t vgpu_pf_vf_page_table_limit(const struct vgpu_pf *pf);

/* doorbell.c, compute_unit.c */
int vgpu_pf_doorbell_check(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t pages);
int vgpu_pf_doorbell_set(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t pages);
uint32_t vgpu_pf_doorbell_get(struct vgpu_pf *pf, const struct vgpu_vf *vf);
uint64_t vgpu_pf_compute_unit_all(const struct vgpu_pf *pf);
int vgpu_pf_compute_unit_check(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t mask);
int vgpu_pf_compute_unit_set(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint64_t mask);
uint64_t vgpu_pf_compute_unit_get(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* vbios.c, pf2vf.c */
void vgpu_pf_vbios_build(uint8_t image[VGPU_PF_SCRATCH_BYTES], uint32_t vram_mb);
int vgpu_pf_vbios_write(struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_pf2vf_write(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_pf2vf_read_guest(struct vgpu_pf *pf, const struct vgpu_vf *vf, struct vgpu_pf_vf *out);

/* provision.c */
int vgpu_pf_provision_request(struct vgpu_pf *pf, struct vgpu_pf_provision *request,
			      uint64_t token);
int vgpu_pf_provision_again(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_provision_continue(struct vgpu_pf *pf, int error);
void vgpu_pf_provision_cancel(struct vgpu_pf *pf, uint64_t token);
void vgpu_pf_provision_forget(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* control.c: the life cycle */
int vgpu_pf_control_post(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			 enum vgpu_pf_reason reason);
int vgpu_pf_control_request(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_vf_event event,
			    uint64_t token);
void vgpu_pf_control_settle(struct vgpu_pf *pf);
void vgpu_pf_control_begin(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_control_allows(const struct vgpu_vf *vf, enum vgpu_vf_event event);
bool vgpu_pf_control_is_runnable(const struct vgpu_vf *vf);
int vgpu_pf_control_set_gates(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* the life cycle table, for the test that walks it */
struct vgpu_control_row {
	uint8_t from;  /* enum vgpu_pf_vf_state */
	uint8_t event; /* enum vgpu_vf_event */
	uint8_t to;
	void (*enter)(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason);
};
const struct vgpu_control_row *vgpu_pf_control_table(uint32_t *rows);

/* world_switch.c */
void vgpu_pf_world_switch_start(struct vgpu_pf *pf, uint32_t from, uint32_t to);
void vgpu_pf_world_switch_poll(struct vgpu_pf *pf);
bool vgpu_pf_world_switch_is_engine_free(struct vgpu_pf *pf);
void vgpu_pf_world_switch_abandon(struct vgpu_pf *pf);

/* run_table.c */
void vgpu_pf_run_table_start(struct vgpu_pf *pf);
void vgpu_pf_run_table_stop(struct vgpu_pf *pf);
void vgpu_pf_run_table_settle(struct vgpu_pf *pf);
void vgpu_pf_run_table_switched(struct vgpu_pf *pf);
void vgpu_pf_run_table_failed(struct vgpu_pf *pf, uint32_t culprit, enum vgpu_pf_reason reason);
void vgpu_pf_run_table_watch(struct vgpu_pf *pf);
void vgpu_pf_run_table_wake(struct vgpu_pf *pf);
void vgpu_pf_run_table_idle(struct vgpu_pf *pf);
void vgpu_pf_run_table_expired(struct vgpu_pf *pf);
void vgpu_pf_run_table_slice_timer(struct vgpu_pf *pf);
void vgpu_pf_run_table_contract_timer(struct vgpu_pf *pf);
void vgpu_pf_run_table_evict(struct vgpu_pf *pf);
void vgpu_pf_run_table_lost(struct vgpu_pf *pf);
void vgpu_pf_run_table_recover(struct vgpu_pf *pf);
void vgpu_pf_run_table_set_exclusive(struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_run_table_holds(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_run_table_set(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table);
void vgpu_pf_run_table_get(const struct vgpu_pf *pf, struct vgpu_pf_run_table *table);
void vgpu_pf_run_table_load(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table);
void vgpu_pf_run_table_reset_vf(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* run_contract.c: reservations, caps and bands */
void vgpu_pf_run_contract_charge(struct vgpu_pf *pf, struct vgpu_vf *vf, const struct vgpu_run *run,
				 uint64_t ran, uint64_t reserved);
uint64_t vgpu_pf_run_contract_capped_ns(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* run_share.c: what each VF is owed for its weight */
int64_t vgpu_pf_run_share_lag(struct vgpu_pf *pf, const struct vgpu_vf *vf);

/* run_log.c: service received, from the device's own time stamps */
void vgpu_pf_run_log_start(struct vgpu_pf *pf);
void vgpu_pf_run_log_stop(struct vgpu_pf *pf);
void vgpu_pf_run_log_drain(struct vgpu_pf *pf);
void vgpu_pf_run_log_count_switch(struct vgpu_pf *pf, uint64_t duration_ns);
uint64_t vgpu_pf_run_log_percentile(const struct vgpu_pf *pf, uint32_t per_mille);

/* mailbox.c */
void vgpu_pf_mailbox_service(struct vgpu_pf *pf);
void vgpu_pf_mailbox_send(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t event, uint32_t dw1,
			  uint32_t dw2);
void vgpu_pf_mailbox_resume(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_refuse(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_lost(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_forget(struct vgpu_vf *vf);
void vgpu_pf_mailbox_throttle_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_answer_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_mailbox_outbox_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* full_access.c */
int vgpu_pf_full_access_grant(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t request);
void vgpu_pf_full_access_end(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_full_access_suspend(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_full_access_resume(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_full_access_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* reset.c */
void vgpu_pf_reset_begin(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_pf_reason reason);
void vgpu_pf_reset_device_back(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_guest_ready(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_cancel(struct vgpu_vf *vf);
void vgpu_pf_reset_look(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_reset_function_event(struct vgpu_pf *pf);
void vgpu_pf_reset_whole(struct vgpu_pf *pf);
void vgpu_pf_reset_whole_poll(struct vgpu_pf *pf);
bool vgpu_pf_reset_is_whole(struct vgpu_pf *pf);

/* guard.c */
void vgpu_pf_guard_init(struct vgpu_vf *vf, const uint32_t limits[VGPU_GUARD_KINDS]);
int vgpu_pf_guard_check(struct vgpu_pf *pf, const uint32_t limits[VGPU_GUARD_KINDS]);
void vgpu_pf_guard_count(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_guard_kind kind);
uint32_t vgpu_pf_guard_in_window(struct vgpu_pf *pf, const struct vgpu_vf *vf,
				 enum vgpu_guard_kind kind);
bool vgpu_pf_guard_is_throttled(const struct vgpu_vf *vf);
void vgpu_pf_guard_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_guard_resume(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_guard_forgive(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_guard_may_tell(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_guard_tell_timer(struct vgpu_pf *pf, struct vgpu_vf *vf);

/* bulk.c */
int vgpu_pf_bulk_submit(struct vgpu_pf *pf, const struct vgpu_bulk_op *op);
void vgpu_pf_bulk_poll(struct vgpu_pf *pf);
void vgpu_pf_bulk_abort(struct vgpu_pf *pf, int error);

/* scrub.c */
void vgpu_pf_scrub_begin(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_scrub_has_given_up(const struct vgpu_vf *vf);
void vgpu_pf_scrub_again(struct vgpu_pf *pf, struct vgpu_vf *vf);
bool vgpu_pf_scrub_is_clean(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_scrub_units(struct vgpu_pf *pf, const struct vgpu_vf *vf);
int vgpu_pf_scrub_durable(struct vgpu_pf *pf, struct vgpu_vf *vf);
int vgpu_pf_scrub_verify(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t token);

/* vf_state.c, dump.c */
int vgpu_pf_vf_state_save(struct vgpu_pf *pf, struct vgpu_vf *vf, struct vgpu_pf_stream *payload,
			  uint64_t token);
int vgpu_pf_vf_state_restore(struct vgpu_pf *pf, struct vgpu_vf *vf, struct vgpu_pf_stream *payload,
			     uint64_t token);
int vgpu_pf_vf_state_begin(struct vgpu_pf *pf, enum vgpu_stream_kind kind, uint32_t vf,
			   struct vgpu_pf_stream *payload, uint64_t token);
void vgpu_pf_vf_state_advance(struct vgpu_pf *pf);
bool vgpu_pf_vf_state_is_restoring(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
bool vgpu_pf_vf_state_is_half_restored(const struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_vf_state_left_pause(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_vf_state_forget(struct vgpu_pf *pf, const struct vgpu_vf *vf);
void vgpu_pf_vf_state_abort(struct vgpu_pf *pf, int error);
int vgpu_pf_dump_request(struct vgpu_pf *pf, struct vgpu_pf_stream *payload, uint64_t token);
void vgpu_pf_dump_mismatch(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t event);

/* pf.c */
void vgpu_pf_watchdog(struct vgpu_pf *pf);
void vgpu_pf_lose_vf(struct vgpu_pf *pf, struct vgpu_vf *vf);
void vgpu_pf_give_up(struct vgpu_pf *pf);
void vgpu_pf_settle(struct vgpu_pf *pf);
void vgpu_pf_reprogram_all(struct vgpu_pf *pf);

#ifdef __cplusplus
}
#endif

#endif
