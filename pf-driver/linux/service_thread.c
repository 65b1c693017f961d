// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The thread that serves the device, and the lock around the core.
 *
 * Every caller of the core ends with vgpu_platform_unlock(), which acts on the results of the call.
 * vgpu_platform_unlock() detaches a lost device and confirms scrubs (confirms_scrub). If a VF's
 * state or attachment has changed, vgpu_platform_unlock() also wakes waiting threads and queues the
 * deferred work (pci.c), which notifies pollers of sysfs files and assigns drivers, for example.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/platform.h"

#define RETRY_MS 1000u /* time between two attempts to attach to a lost device */

void vgpu_platform_lock(struct vgpu_platform *platform)
{
	rt_mutex_lock(&platform->lock);
}

/* Get the core's view of one VF; the platform is not locked. */
struct vgpu_pf_vf_view vgpu_platform_view(struct vgpu_platform *platform, u32 vf)
{
	struct vgpu_pf_vf_view view;

	vgpu_platform_lock(platform);
	view = vgpu_pf_view_vf(platform->pf, vf);
	vgpu_platform_unlock(platform);
	return view;
}

static void confirm_scrub(struct vgpu_platform *platform, struct vgpu_platform_vf *vf)
{
	struct vgpu_pf_vf_ref ref = {.size = sizeof(ref), .vf = vf->number};
	struct vgpu_pf_vf_view view = vgpu_pf_view_vf(platform->pf, vf->number);

	if (!view.awaits_durable) {
		/* an ABSENT VF has no scrub left to confirm; the next release may be a client's */
		vf->confirms_scrub &= view.state != VGPU_PF_VF_ABSENT;
		return;
	}
	vf->confirms_scrub = false;
	vgpu_pf_request_run(platform->pf, VGPU_PF_OP_SCRUB_DURABLE, &ref,
			    ++platform->clients.last_token);
}

/* a change between RUNNING and READY, which each slice causes, is not reported */
static enum vgpu_pf_vf_state reported_state(const struct vgpu_platform *platform, u32 vf)
{
	enum vgpu_pf_vf_state state = vgpu_pf_view_vf(platform->pf, vf).state;

	return state == VGPU_PF_VF_RUNNING ? VGPU_PF_VF_READY : state;
}

/* returns true if the state has changed */
static bool record_state(struct vgpu_platform *platform, struct vgpu_platform_vf *vf)
{
	enum vgpu_pf_vf_state state = reported_state(platform, vf->number);

	if (state == vf->seen.state)
		return false;
	WRITE_ONCE(vf->seen.state, state);
	return true;
}

/*
 * Records whether a client of the VF's vfio-user socket (such as QEMU; see sriov.c) has attached
 * the VF: the VF is attached, and no driver of this host uses its function. The client's guest may
 * not have loaded a driver yet. Returns true if the attachment has changed.
 */
static bool record_attachment(struct vgpu_platform *platform, struct vgpu_platform_vf *vf)
{
	bool is_attached = vgpu_pf_view_vf(platform->pf, vf->number).is_attached;

	if (is_attached == vf->seen.attached)
		return false;
	vf->seen.attached = is_attached;
	vf->has_client = is_attached && !vgpu_sriov_is_attached_by_driver(platform, vf->number);
	return true;
}

/*
 * Detaches the core from a device that is gone. Ends the device's DMA first: a device that comes
 * back must not write to memory that the core frees now. Wakes callers that wait for the release of
 * a VF, because the release does not end without the device. Wakes the service thread, which polls
 * for the device from now on, because no interrupt will come.
 */
static void detach_device(struct vgpu_platform *platform)
{
	pci_clear_master(platform->pdev);
	vgpu_pf_surprise_remove(platform->pf);
	wake_up_all(&platform->state_wait);
	wake_up_process(platform->service.thread);
}

static void finish_call(struct vgpu_platform *platform)
{
	bool is_changed = false;

	if (platform->is_gone)
		return;
	if (platform->is_device_lost && vgpu_pf_view_device(platform->pf)->is_attached)
		detach_device(platform);
	/* the core itself has abandoned a device that did not come back from its reset */
	if (vgpu_pf_view_device_was_lost_in_reset(platform->pf) && !platform->is_device_lost &&
	    !platform->is_device_suspended) {
		platform->is_device_lost = true;
		detach_device(platform);
	}
	for (u32 i = 1; i <= platform->total_vfs; i++)
		if (platform->vfs[i].confirms_scrub)
			confirm_scrub(platform, &platform->vfs[i]);
	for (u32 i = 1; i <= platform->total_vfs; i++)
		is_changed |= record_state(platform, &platform->vfs[i]) |
			      record_attachment(platform, &platform->vfs[i]);
	if (!is_changed)
		return;
	wake_up_all(&platform->state_wait);
	schedule_work(&platform->service.deferred);
}

void vgpu_platform_unlock(struct vgpu_platform *platform)
{
	finish_call(platform);
	rt_mutex_unlock(&platform->lock);
}

/* Wake the service thread for a reason. Callable from any context. */
void vgpu_platform_wake(struct vgpu_platform *platform, enum vgpu_wakeup why)
{
	set_bit(why, &platform->service.wakeups);
	wake_up_process(platform->service.thread);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	vgpu_platform_wake(container_of(timer, struct vgpu_platform, service.timer),
			   VGPU_WAKEUP_TIMER);
	return HRTIMER_NORESTART;
}

/* Set the timer to deadline_ns of CLOCK_MONOTONIC; 0: disarm the timer. */
void vgpu_platform_arm_timer(struct vgpu_platform *platform, u64 deadline_ns)
{
	/* if a cancelled timer fires nevertheless, the core finds no deadline due */
	if (deadline_ns == 0)
		hrtimer_try_to_cancel(&platform->service.timer);
	else
		hrtimer_start(&platform->service.timer, ns_to_ktime(deadline_ns),
			      HRTIMER_MODE_ABS_HARD);
}

/* attaches the core; logs a failure once, not at each attempt */
static int attach(struct vgpu_platform *platform)
{
	int error;

	pci_set_master(platform->pdev);
	platform->is_device_lost = false;
	error = vgpu_pf_attach(platform->pf);
	if (error && !platform->service.is_failure_logged)
		dev_err(&platform->pdev->dev, "%s\n", vgpu_pf_view_message(platform->pf));
	platform->service.is_failure_logged = error != 0;
	/* the flag may be true already: the device may have gone while the core attached */
	platform->is_device_lost |= error != 0;
	/* start the work that had to wait for the device */
	if (!error)
		schedule_work(&platform->service.deferred);
	return error;
}

/* attaches the core if the device answers again, such as after a reset; else returns -ENODEV */
static int try_attach(struct vgpu_platform *platform)
{
	if (!vgpu_linux_is_device_there(platform))
		return -ENODEV;
	vgpu_pci_restore(platform);
	return attach(platform);
}

static void serve(struct vgpu_platform *platform)
{
	unsigned long why = xchg(&platform->service.wakeups, 0);

	vgpu_platform_lock(platform);
	if (!platform->is_gone && !platform->is_device_suspended) {
		if (why & BIT(VGPU_WAKEUP_INTERRUPT))
			vgpu_pf_interrupt(platform->pf);
		if (why & BIT(VGPU_WAKEUP_TIMER))
			vgpu_pf_timer(platform->pf);
		if (platform->is_device_lost && !vgpu_pf_view_device(platform->pf)->is_attached)
			try_attach(platform);
	}
	vgpu_platform_unlock(platform);
}

static long timeout(const struct vgpu_platform *platform)
{
	return READ_ONCE(platform->is_device_lost) ? (long)msecs_to_jiffies(RETRY_MS)
						   : MAX_SCHEDULE_TIMEOUT;
}

static int run_service_thread(void *context)
{
	struct vgpu_platform *platform = context;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!READ_ONCE(platform->service.wakeups) && !kthread_should_stop())
			schedule_timeout(timeout(platform));
		__set_current_state(TASK_RUNNING);
		serve(platform);
	}
	return 0;
}

/* Start the thread; the core may be called from now on. Return: 0 or a negative errno. */
int vgpu_platform_start(struct vgpu_platform *platform)
{
	hrtimer_setup(&platform->service.timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	platform->service.thread =
		kthread_create(run_service_thread, platform, "vgpu-pf%d", platform->index);
	if (IS_ERR(platform->service.thread))
		return PTR_ERR(platform->service.thread);
	/* between two quanta the engine waits for this thread */
	sched_set_fifo_low(platform->service.thread);
	wake_up_process(platform->service.thread);
	return 0;
}

/*
 * Detach the core from the device, and stop the thread. The caller has freed the interrupts. The
 * VFs stay in service: the device keeps their state.
 */
void vgpu_platform_stop(struct vgpu_platform *platform)
{
	vgpu_platform_lock(platform);
	/* ends the device's DMA first, because the core frees memory that the device writes to */
	pci_clear_master(platform->pdev);
	vgpu_pf_shutdown(platform->pf);
	WRITE_ONCE(platform->is_gone, true);
	vgpu_client_cancel(platform, NULL, -ENODEV);
	vgpu_platform_unlock(platform);
	/* the timer wakes the thread, so the timer is cancelled first; nobody arms it any more */
	hrtimer_cancel(&platform->service.timer);
	kthread_stop(platform->service.thread);
	wake_up_all(&platform->state_wait);
	wake_up_interruptible_poll(&platform->ring.wait, EPOLLHUP);
}

/* Detach the core from a device that is about to be reset or to lose its power. */
void vgpu_platform_suspend(struct vgpu_platform *platform)
{
	vgpu_platform_lock(platform);
	/* ends the device's DMA first, because the core frees memory that the device writes to */
	pci_clear_master(platform->pdev);
	platform->is_device_suspended = true;
	vgpu_pf_suspend(platform->pf);
	vgpu_platform_unlock(platform);
}

/*
 * Attach the core to the device, which should be back. Return: 0; -ENODEV if the device does not
 * answer; or an error of the core. After an error, the service thread retries.
 */
int vgpu_platform_unsuspend(struct vgpu_platform *platform)
{
	int error;

	vgpu_platform_lock(platform);
	platform->is_device_suspended = false;
	if (platform->is_device_lost) {
		/* restore the state that probe() saved: the PCI core may have saved all ones */
		error = try_attach(platform);
	} else {
		/* pci_restore_state() has consumed the saved configuration space: save it again */
		if (vgpu_linux_is_device_there(platform))
			pci_save_state(platform->pdev);
		error = attach(platform);
	}
	vgpu_platform_unlock(platform);
	/* interrupts and timers that came during the suspension were not served: serve them now */
	set_bit(VGPU_WAKEUP_INTERRUPT, &platform->service.wakeups);
	vgpu_platform_wake(platform, VGPU_WAKEUP_TIMER);
	return error;
}
