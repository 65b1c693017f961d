// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DOC: World switch
 *
 * Carries out a world switch: writes the commands to the device, and polls until each command has
 * ended. The commands depend on the VF that leaves (from), on the VF that enters (to), and on
 * params.is_stepwise:
 *
 *   from, to              CONTEXT_SWITCH            or, stepwise: IDLE SAVE LOAD RUN
 *   from == to            RUN, for another run of the same VF
 *   from only             CONTEXT_SWITCH to the PF  or, stepwise: IDLE SAVE
 *   to only               CONTEXT_SWITCH from the PF  or, stepwise: LOAD RUN
 *
 *   command written --> EXECUTE clear and status DONE --> next command --> switched
 *                |--> status ABORTED or UNSUPPORTED, or the command could
 *                |    not be written ------------------------------------> failed, BAD_STATUS
 *                |--> IDLING for longer than the VF's preemption time-out -> failed, IDLE_TIMEOUT
 *                +--> another status for longer than the command time-out -> failed, time-out
 *
 * At the end of a command, the device sets the status and clears bit EXECUTE of the command
 * (hw/gpuiov.h). The last status determines the VF that is guilty of a failure, and the reason of a
 * time-out. If the status has no row in guilty_by_status (such as PENDING or ABORTED), the command
 * determines the guilty VF and the reason.
 *
 * The interrupt at the end of a command makes the core poll the command. A timer with a growing
 * delay does the same, so that a lost interrupt only delays the switch. This file does not choose
 * VFs. It reports the end of a switch to engine.c and, if the switch failed, also the guilty VF and
 * the reason.
 */
#include "pf-driver/core/run/internal.h"

#define COMMAND_TIMEOUT_MS 500u			  /* times params.time_scale */
#define POLL_FIRST_NS	   (200 * VGPU_NS_PER_US) /* the delay doubles with each poll */
#define POLL_LAST_NS	   (10 * VGPU_NS_PER_MS)  /* longest delay */

/* the function id of a VF in a command; vf 0: the PF, which stands for "no VF" */
static uint32_t function_of(uint32_t vf)
{
	return vf ? GPUIOV_FCN_VF | (vf - 1) : GPUIOV_FCN_PF;
}

static void add_step(struct vgpu_pf_switch *sw, enum gpuiov_command command)
{
	sw->steps[sw->step_count++] = (uint8_t)command;
}

static void plan_steps(struct vgpu_pf *pf)
{
	struct vgpu_pf_switch *sw = &pf->sw;

	sw->step_count = 0;
	sw->step = 0;
	if (sw->from == sw->to) {
		add_step(sw, GPUIOV_CMD_RUN);
		return;
	}
	if (!pf->params.is_stepwise) {
		add_step(sw, GPUIOV_CMD_CONTEXT_SWITCH);
		return;
	}
	if (sw->from) {
		add_step(sw, GPUIOV_CMD_IDLE);
		add_step(sw, GPUIOV_CMD_SAVE);
	}
	if (sw->to) {
		add_step(sw, GPUIOV_CMD_LOAD);
		add_step(sw, GPUIOV_CMD_RUN);
	}
}

/* composes the present command from its opcode, its function, and the next function */
static uint32_t command_dword(const struct vgpu_pf_switch *sw)
{
	uint32_t command = sw->steps[sw->step];
	bool is_outgoing = command == GPUIOV_CMD_IDLE || command == GPUIOV_CMD_SAVE ||
			   command == GPUIOV_CMD_CONTEXT_SWITCH;

	return GPUIOV_COMMAND(command, function_of(is_outgoing ? sw->from : sw->to),
			      function_of(sw->to));
}

static void issue_command(struct vgpu_pf *pf)
{
	struct vgpu_pf_switch *sw = &pf->sw;

	/* if the write fails, CMD_STATUS is still that of the previous command: do not use it */
	sw->is_unwritten =
		vgpu_pf_device_scheduler_write(pf, GPUIOV_SCH_CMD_CONTROL, command_dword(sw)) != 0;
	sw->status_ns = vgpu_pf_timer_now(pf);
	sw->status = GPUIOV_STATUS_PENDING;
	sw->poll_delay_ns = POLL_FIRST_NS;
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SWITCH, sw->poll_delay_ns);
}

/*
 * Begin a world switch from one VF to another (0: no VF), or another run of the same VF. No other
 * switch may be in progress.
 */
void vgpu_pf_run_switch_start(struct vgpu_pf *pf, uint32_t from, uint32_t to)
{
	pf->sw.is_busy = true;
	pf->sw.from = from;
	pf->sw.to = to;
	plan_steps(pf);
	issue_command(pf);
}

/* which VF is guilty of a failed world switch, and the reason if the switch timed out */
struct guilty_row {
	uint32_t key;	  /* the last status (gpuiov_status) or failed command (gpuiov_command) */
	bool is_outgoing; /* true: the VF that leaves is guilty; false: the VF that enters */
	enum vgpu_pf_reason reason;
};

static const struct guilty_row guilty_by_status[] = {
	{GPUIOV_STATUS_IDLING, true, VGPU_PF_REASON_IDLE_TIMEOUT},
	{GPUIOV_STATUS_SAVING, true, VGPU_PF_REASON_SAVE_TIMEOUT},
	{GPUIOV_STATUS_LOADING, false, VGPU_PF_REASON_LOAD_TIMEOUT},
	{GPUIOV_STATUS_INITIALISING, false, VGPU_PF_REASON_LOAD_TIMEOUT},
	{GPUIOV_STATUS_ENABLING, false, VGPU_PF_REASON_RUN_TIMEOUT},
};

static const struct guilty_row guilty_by_command[] = {
	{GPUIOV_CMD_IDLE, true, VGPU_PF_REASON_IDLE_TIMEOUT},
	{GPUIOV_CMD_SAVE, true, VGPU_PF_REASON_SAVE_TIMEOUT},
	{GPUIOV_CMD_LOAD, false, VGPU_PF_REASON_LOAD_TIMEOUT},
	{GPUIOV_CMD_RUN, false, VGPU_PF_REASON_RUN_TIMEOUT},
	/* the status does not name the guilty VF: blame the VF that leaves, which had the engine */
	{GPUIOV_CMD_CONTEXT_SWITCH, true, VGPU_PF_REASON_IDLE_TIMEOUT},
};

static const struct guilty_row *find_guilty(const struct guilty_row *rows, uint32_t count,
					    uint32_t key)
{
	for (uint32_t i = 0; i < count; i++)
		if (rows[i].key == key)
			return &rows[i];
	return NULL;
}

static void fail(struct vgpu_pf *pf, bool is_bad_status)
{
	struct vgpu_pf_switch *sw = &pf->sw;
	const struct guilty_row *row =
		find_guilty(guilty_by_status, VGPU_COUNT_OF(guilty_by_status), sw->status);
	/*
	 * not logged as an error: a VMM may have reset its VF, and such a reset aborts the command
	 */
	bool is_first_abort = sw->status == GPUIOV_STATUS_ABORTED && pf->scheduler.aborts == 0;
	uint32_t guilty;

	if (!row)
		row = find_guilty(guilty_by_command, VGPU_COUNT_OF(guilty_by_command),
				  sw->steps[sw->step]);
	/* if only one VF takes part in the switch, that VF is guilty */
	guilty = (row->is_outgoing && sw->from) || !sw->to ? sw->from : sw->to;
	if (vgpu_pf_notify_allows(pf, &pf->vfs[guilty]))
		vgpu_pf_text_log(pf, is_first_abort ? VGPU_OS_LOG_INFO : VGPU_OS_LOG_ERROR,
				 "VF%u: world switch %u -> %u failed, command %u, status 0x%x",
				 guilty, sw->from, sw->to, sw->steps[sw->step], sw->status);
	sw->is_busy = false;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SWITCH);
	vgpu_pf_run_engine_failed(pf, guilty,
				  is_bad_status ? VGPU_PF_REASON_BAD_STATUS : row->reason);
}

static uint64_t preempt_timeout_ns(const struct vgpu_pf *pf)
{
	const struct vgpu_vf *vf = &pf->vfs[pf->sw.from];
	uint32_t us = vf->contract.terms.preempt_timeout_us;

	if (us == 0)
		us = vf->config.preempt_timeout_us;
	return (us ? us : VGPU_PF_PREEMPT_TIMEOUT_DEFAULT_US) * VGPU_NS_PER_US *
	       pf->params.time_scale;
}

static bool is_out_of_time(const struct vgpu_pf *pf, uint64_t now)
{
	const struct vgpu_pf_switch *sw = &pf->sw;

	/* in status IDLING, the VF's preemption time-out applies instead of the command time-out */
	if (sw->status == GPUIOV_STATUS_IDLING)
		return now - sw->status_ns >= preempt_timeout_ns(pf);
	return now - sw->status_ns >= vgpu_pf_timer_scaled_ns(pf, COMMAND_TIMEOUT_MS);
}

static void poll_later(struct vgpu_pf *pf, uint32_t status)
{
	struct vgpu_pf_switch *sw = &pf->sw;
	uint64_t now = vgpu_pf_timer_now(pf);

	if (status != sw->status) {
		sw->status = status;
		sw->status_ns = now;
	}
	if (is_out_of_time(pf, now)) {
		fail(pf, false);
		return;
	}
	sw->poll_delay_ns = vgpu_min_u64(sw->poll_delay_ns * 2, POLL_LAST_NS);
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_SWITCH, sw->poll_delay_ns);
}

static void next_step(struct vgpu_pf *pf)
{
	struct vgpu_pf_switch *sw = &pf->sw;

	if (++sw->step < sw->step_count) {
		issue_command(pf);
		return;
	}
	sw->is_busy = false;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SWITCH);
	vgpu_pf_run_engine_switched(pf);
}

/* Check whether the present command has ended, and continue the world switch accordingly. */
void vgpu_pf_run_switch_poll(struct vgpu_pf *pf)
{
	uint32_t control, status;

	if (!pf->sw.is_busy)
		return;
	if (pf->sw.is_unwritten) {
		/* a command that could not be written counts as aborted */
		pf->sw.status = GPUIOV_STATUS_ABORTED;
		fail(pf, true);
		return;
	}
	control = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_CMD_CONTROL);
	status = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_CMD_STATUS) & 0xffu;
	if (control & GPUIOV_CMD_EXECUTE) {
		poll_later(pf, status);
		return;
	}
	if (status == GPUIOV_STATUS_DONE) {
		next_step(pf);
		return;
	}
	if (status == GPUIOV_STATUS_ABORTED || status == GPUIOV_STATUS_UNSUPPORTED) {
		pf->sw.status = status;
		fail(pf, true);
		return;
	}
	/* neither success nor failure yet: keep polling until the time-out */
	poll_later(pf, status);
}

/*
 * Return: true if no command is in execution; false also if the device is gone (all ones). Even if
 * true, the device refuses commands while a stalled VF is in the engine.
 */
bool vgpu_pf_run_switch_is_engine_free(struct vgpu_pf *pf)
{
	uint32_t control = vgpu_pf_device_scheduler_read(pf, GPUIOV_SCH_CMD_CONTROL);

	return !(control & GPUIOV_CMD_EXECUTE);
}

/* Forget the world switch in progress, because the scheduler stops. */
void vgpu_pf_run_switch_abandon(struct vgpu_pf *pf)
{
	pf->sw.is_busy = false;
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_SWITCH);
}
