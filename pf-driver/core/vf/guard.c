// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The guard limits four kinds of events that a guest causes: resets (FLR), requests for
 * full access to load or unload the driver (EXCLUSIVE), time-outs of full access
 * (EXCLUSIVE_TIMEOUT), and mailbox messages (INTERRUPT). It counts each kind in a sliding window.
 * The default limits come from GIM, AMD's PF driver. If a window holds more events than its limit,
 * the VF gets a level:
 *
 *   1 EVENT        only report the level; the higher levels are reported, too
 *   2 THROTTLE     delay the guest's mailbox messages; the higher levels delay them, too
 *   3 PAUSE        pause the VF
 *   4 FLR          reset the VF
 *   5 QUARANTINE   put the VF into quarantine
 *
 *   level = min(5, 1 + (events in the window - limit - 1) / (1 + limit / 8)), each quotient
 *           rounded down
 *
 * The guard does not count resets by an operator, by the guard itself, after a time-out of full
 * access, or because the VMM closes the function. It counts nothing that a VF in quarantine causes.
 *
 * The level returns to NONE when each window holds at most half of its limit, so that a guest near
 * a limit is not reported repeatedly. Only an operator ends a quarantine. base/notify.c limits the
 * rate of some events and log lines that a guest can cause.
 */
#include "pf-driver/core/vf/parts.h"

/* how often the guard checks whether it can lift its reaction */
#define GUARD_CHECK_NS VGPU_NS_PER_S

enum guard_level {
	GUARD_LEVEL_NONE = 0,
	GUARD_LEVEL_EVENT,
	GUARD_LEVEL_THROTTLE,
	GUARD_LEVEL_PAUSE,
	GUARD_LEVEL_FLR,
	GUARD_LEVEL_QUARANTINE,
	GUARD_LEVELS,
};

struct guard_window {
	const char *name; /* for the log */
	uint32_t limit;	  /* default of the limit */
	uint32_t seconds; /* length of the window */
};

static const struct guard_window windows[VGPU_GUARD_KINDS] = {
	[VGPU_GUARD_FLR] = {"flr", 3, 60},
	[VGPU_GUARD_EXCLUSIVE] = {"exclusive", 9, 60},
	[VGPU_GUARD_EXCLUSIVE_TIMEOUT] = {"exclusive_timeout", 2, 500},
	[VGPU_GUARD_INTERRUPT] = {"interrupt", 56, 60},
};

/* the life cycle event that the guard posts when a VF reaches a level; NONE: no event */
static const enum vgpu_vf_event level_events[GUARD_LEVELS] = {
	[GUARD_LEVEL_PAUSE] = VGPU_VF_EVENT_PAUSE,
	[GUARD_LEVEL_FLR] = VGPU_VF_EVENT_RESET,
	[GUARD_LEVEL_QUARANTINE] = VGPU_VF_EVENT_QUARANTINE,
};

/*
 * Check the limits of a request: 0 means the default, and UINT32_MAX means no limit. Return: 0, or
 * -EINVAL with a message.
 */
int vgpu_pf_guard_check(struct vgpu_pf *pf, const uint32_t limits[VGPU_GUARD_KINDS])
{
	for (uint32_t kind = 0; kind < VGPU_GUARD_KINDS; kind++)
		if (limits[kind] > VGPU_GUARD_LIMIT_MAX && limits[kind] != UINT32_MAX)
			return vgpu_pf_text_fail(
				pf, -EINVAL,
				"guard_limits[%u] is %u; at most %u, or 0xffffffff for none", kind,
				limits[kind], VGPU_GUARD_LIMIT_MAX);
	return 0;
}

/* Initialise the guard: empty windows, and limits that vgpu_pf_guard_check() has accepted. */
void vgpu_pf_guard_init(struct vgpu_vf *vf, const uint32_t limits[VGPU_GUARD_KINDS])
{
	memset(&vf->guard, 0, sizeof(vf->guard));
	for (uint32_t kind = 0; kind < VGPU_GUARD_KINDS; kind++)
		vf->guard.limits[kind] = limits[kind];
}

/* Count the events of one kind in the window that ends now, up to VGPU_GUARD_RECORDS. */
uint32_t vgpu_pf_guard_in_window(struct vgpu_pf *pf, const struct vgpu_vf *vf,
				 enum vgpu_guard_kind kind)
{
	uint64_t now = vgpu_pf_timer_now(pf);
	uint32_t counted = vf->guard.counted[kind];
	uint32_t retained = counted < VGPU_GUARD_RECORDS ? counted : VGPU_GUARD_RECORDS;
	uint32_t count = 0;

	for (uint32_t i = 0; i < retained; i++)
		count += now - vf->guard.times_ns[kind][i] < windows[kind].seconds * VGPU_NS_PER_S;
	return count;
}

/* 0 in guard.limits means the default, also for a VF that was never provisioned */
static uint32_t limit_of(const struct vgpu_vf *vf, enum vgpu_guard_kind kind)
{
	return vf->guard.limits[kind] ? vf->guard.limits[kind] : windows[kind].limit;
}

static uint32_t level_for(const struct vgpu_vf *vf, enum vgpu_guard_kind kind, uint32_t count)
{
	uint32_t limit = limit_of(vf, kind);
	uint32_t level;

	if (limit == UINT32_MAX || count <= limit)
		return GUARD_LEVEL_NONE;
	level = GUARD_LEVEL_EVENT + (count - limit - 1) / (1 + limit / 8);
	return level < GUARD_LEVELS ? level : GUARD_LEVEL_QUARANTINE;
}

static void apply_level(struct vgpu_vf *vf)
{
	enum vgpu_vf_event event = level_events[vf->guard.level];

	if (event != VGPU_VF_EVENT_NONE && vgpu_pf_control_allows(vf, event))
		vgpu_vf_post(vf, event, VGPU_PF_REASON_GUARD);
}

/* Record an event that a guest caused, and raise the level if the window now requires it. */
void vgpu_pf_guard_count(struct vgpu_pf *pf, struct vgpu_vf *vf, enum vgpu_guard_kind kind)
{
	uint32_t slot = vf->guard.counted[kind] % VGPU_GUARD_RECORDS;
	uint32_t level;

	/* no reaction is stronger than quarantine */
	if (vf->state == VGPU_PF_VF_QUARANTINED)
		return;
	vf->guard.counted[kind]++;
	vf->guard.times_ns[kind][slot] = vgpu_pf_timer_now(pf);
	level = level_for(vf, kind, vgpu_pf_guard_in_window(pf, vf, kind));
	if (level <= vf->guard.level)
		return;
	vf->guard.level = level;
	vgpu_pf_text_log(pf, VGPU_OS_LOG_WARNING, "VF%u: guard limit '%s' exceeded, level %u",
			 vf->number, windows[kind].name, level);
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_GUARD, vf->number, kind, level);
	vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_GUARD, GUARD_CHECK_NS);
	apply_level(vf);
}

/* True if the core delays the VF's messages. */
bool vgpu_pf_guard_is_throttled(const struct vgpu_vf *vf)
{
	return vf->guard.level >= GUARD_LEVEL_THROTTLE;
}

/* true if the VF is not in quarantine, and each window holds at most half of its limit */
static bool may_lift(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	for (uint32_t kind = 0; kind < VGPU_GUARD_KINDS; kind++)
		if (vgpu_pf_guard_in_window(pf, vf, kind) > limit_of(vf, kind) / 2)
			return false;
	return vf->state != VGPU_PF_VF_QUARANTINED;
}

static void lift_reaction(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	enum vgpu_vf_event event =
		vf->control.driver_loaded ? VGPU_VF_EVENT_RESUME : VGPU_VF_EVENT_RESUME_FRESH;

	/* a resume would make the RESTORE of the VF fail, or is not possible: check again later */
	if (vgpu_pf_stream_is_restoring(pf, vf) || vgpu_pf_full_access_prevents_resume(pf, vf)) {
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_GUARD, GUARD_CHECK_NS);
		return;
	}
	vf->guard.level = GUARD_LEVEL_NONE;
	vgpu_pf_event_simple(pf, VGPU_PF_EVENT_GUARD, vf->number, VGPU_GUARD_KINDS, 0);
	if (!vf->guard.paused)
		return;
	vf->guard.paused = false;
	if (vf->state == VGPU_PF_VF_PAUSED)
		vgpu_vf_post(vf, event, VGPU_PF_REASON_GUARD);
}

/* Lift the guard's reaction if the VF's windows allow it; otherwise check again later. */
void vgpu_pf_guard_timer(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	/* also check `paused`: the checkpoint has no level, so a new core begins with level NONE */
	if (vf->guard.level == GUARD_LEVEL_NONE && !vf->guard.paused)
		return;
	if (may_lift(pf, vf))
		lift_reaction(pf, vf);
	else
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_GUARD, GUARD_CHECK_NS);
}

/* Take over a quarantine or pause from the checkpoint, into a new core with empty windows. */
void vgpu_pf_guard_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	if (vf->state == VGPU_PF_VF_QUARANTINED)
		vf->guard.level = GUARD_LEVEL_QUARANTINE;
	if (vf->guard.paused || vf->guard.level)
		vgpu_pf_timer_set_vf(pf, vf, VGPU_VF_TIMER_GUARD, GUARD_CHECK_NS);
}

/* Empty the windows and lift the reaction, because an operator ends the quarantine. */
void vgpu_pf_guard_clear(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	memset(vf->guard.counted, 0, sizeof(vf->guard.counted));
	lift_reaction(pf, vf);
}
