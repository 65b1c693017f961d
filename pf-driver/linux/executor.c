// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The thread that serves the device, and the lock around the core.
 *
 * Every caller of the core leaves through vgpu_home_unlock(), which acts on the results of the
 * call. It detaches a lost device and confirms scrubs of this home. It reports changes of state to
 * waiters and, through a work item, to sysfs and the driver core.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/home.h"

#define RETRY_MS 1000u

void vgpu_home_lock(struct vgpu_home *home)
{
	rt_mutex_lock(&home->lock);
}

/* The core's view of one VF; the home is not locked. */
struct vgpu_pf_vf_view vgpu_home_view(struct vgpu_home *home, u32 vf)
{
	struct vgpu_pf_vf_view view;

	vgpu_home_lock(home);
	view = vgpu_pf_view_vf(home->pf, vf);
	vgpu_home_unlock(home);
	return view;
}

static void confirm_scrub(struct vgpu_home *home, struct vgpu_home_vf *vf)
{
	struct vgpu_pf_vf_ref ref = {.size = sizeof(ref), .vf = vf->number};

	if (!vgpu_pf_view_vf(home->pf, vf->number).wants_durable)
		return;
	vf->confirms_scrub = false;
	vgpu_pf_request_run(home->pf, VGPU_PF_OP_SCRUB_DURABLE, &ref, ++home->clients.next_token);
}

/* outside of the core, RUNNING and READY are one state */
static enum vgpu_pf_vf_state folded_state(const struct vgpu_home *home, u32 vf)
{
	enum vgpu_pf_vf_state state = vgpu_pf_view_vf(home->pf, vf).state;

	return state == VGPU_PF_VF_RUNNING ? VGPU_PF_VF_READY : state;
}

static bool note_state(struct vgpu_home *home, struct vgpu_home_vf *vf)
{
	enum vgpu_pf_vf_state state = folded_state(home, vf->number);

	if (state == vf->seen.state)
		return false;
	WRITE_ONCE(vf->seen.state, state);
	return true;
}

/*
 * Notes whether a client of the VF's socket has attached the VF: the VF is attached, and no driver
 * of this host uses its function. The client's guest may not have loaded a driver yet.
 */
static bool note_attachment(struct vgpu_home *home, struct vgpu_home_vf *vf)
{
	bool is_attached = vgpu_pf_view_vf(home->pf, vf->number).is_attached;

	if (is_attached == vf->seen.attached)
		return false;
	vf->seen.attached = is_attached;
	vf->has_client = is_attached && !vgpu_sriov_is_drivers(home, vf->number);
	return true;
}

/*
 * Detaches the core from a device that is gone. Ends the device's DMA first: if the device comes
 * back, it must not write to memory that the core frees now. Wakes callers that wait for the
 * release of a VF, which will not happen. Wakes the thread, which polls for the device from now on:
 * another thread may have noticed the loss, and no interrupt will come.
 */
static void let_go(struct vgpu_home *home)
{
	pci_clear_master(home->pdev);
	vgpu_pf_detach(home->pf);
	wake_up_all(&home->state_wait);
	wake_up_process(home->service.thread);
}

static void finish_call(struct vgpu_home *home)
{
	bool is_changed = false;

	if (home->is_gone)
		return;
	if (home->is_device_lost && vgpu_pf_view_device(home->pf)->is_attached)
		let_go(home);
	/* the core itself gives up a device that does not return from its reset */
	if (vgpu_pf_view_was_lost_in_reset(home->pf) && !home->is_device_lost &&
	    !home->is_device_parked) {
		home->is_device_lost = true;
		let_go(home);
	}
	for (u32 i = 1; i <= home->total_vfs; i++)
		if (home->vfs[i].confirms_scrub)
			confirm_scrub(home, &home->vfs[i]);
	for (u32 i = 1; i <= home->total_vfs; i++)
		is_changed |=
			note_state(home, &home->vfs[i]) | note_attachment(home, &home->vfs[i]);
	if (!is_changed)
		return;
	wake_up_all(&home->state_wait);
	schedule_work(&home->service.chores);
}

void vgpu_home_unlock(struct vgpu_home *home)
{
	finish_call(home);
	rt_mutex_unlock(&home->lock);
}

/* Wake the executor's thread, from any context. */
void vgpu_home_wake(struct vgpu_home *home, enum vgpu_wakeup why)
{
	set_bit(why, &home->service.wakeups);
	wake_up_process(home->service.thread);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	vgpu_home_wake(container_of(timer, struct vgpu_home, service.timer), VGPU_WAKEUP_TIMER);
	return HRTIMER_NORESTART;
}

/* Wake the thread at a time of CLOCK_MONOTONIC; 0: never. */
void vgpu_home_arm_timer(struct vgpu_home *home, u64 deadline_ns)
{
	/* if the timer still fires, no deadline is due */
	if (deadline_ns == 0)
		hrtimer_try_to_cancel(&home->service.timer);
	else
		hrtimer_start(&home->service.timer, ns_to_ktime(deadline_ns),
			      HRTIMER_MODE_ABS_HARD);
}

/* reports a failure once, not at each try */
static int attach(struct vgpu_home *home)
{
	int error;

	pci_set_master(home->pdev);
	home->is_device_lost = false;
	error = vgpu_pf_attach(home->pf);
	if (error && !home->service.is_failure_told)
		dev_err(&home->pdev->dev, "%s\n", vgpu_pf_view_message(home->pf));
	home->service.is_failure_told = error != 0;
	/* a device that went away while the core attached is already lost */
	home->is_device_lost |= error != 0;
	/* work that had to wait for the device */
	if (!error)
		schedule_work(&home->service.chores);
	return error;
}

/* a device that went away may come back, as after a reset */
static int try_attach(struct vgpu_home *home)
{
	if (!vgpu_linux_is_device_there(home))
		return -ENODEV;
	vgpu_pci_restore(home);
	return attach(home);
}

static void serve(struct vgpu_home *home)
{
	unsigned long why = xchg(&home->service.wakeups, 0);

	vgpu_home_lock(home);
	if (!home->is_gone && !home->is_device_parked) {
		if (why & BIT(VGPU_WAKEUP_INTERRUPT))
			vgpu_pf_interrupt(home->pf);
		if (why & BIT(VGPU_WAKEUP_TIMER))
			vgpu_pf_timer(home->pf);
		if (home->is_device_lost && !vgpu_pf_view_device(home->pf)->is_attached)
			try_attach(home);
	}
	vgpu_home_unlock(home);
}

static long patience(const struct vgpu_home *home)
{
	return READ_ONCE(home->is_device_lost) ? (long)msecs_to_jiffies(RETRY_MS)
					       : MAX_SCHEDULE_TIMEOUT;
}

static int run_executor(void *context)
{
	struct vgpu_home *home = context;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!READ_ONCE(home->service.wakeups) && !kthread_should_stop())
			schedule_timeout(patience(home));
		__set_current_state(TASK_RUNNING);
		serve(home);
	}
	return 0;
}

/* Start the thread; the core may be called from now on. */
int vgpu_home_start(struct vgpu_home *home)
{
	hrtimer_setup(&home->service.timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	home->service.thread = kthread_create(run_executor, home, "vgpu-pf%d", home->index);
	if (IS_ERR(home->service.thread))
		return PTR_ERR(home->service.thread);
	/* between two quanta the engine waits for this thread */
	sched_set_fifo_low(home->service.thread);
	wake_up_process(home->service.thread);
	return 0;
}

/* Stop the thread; interrupts are off, and the core is not called any more. VFs stay in service. */
void vgpu_home_stop(struct vgpu_home *home)
{
	vgpu_home_lock(home);
	/* the core frees memory that the device writes to */
	pci_clear_master(home->pdev);
	vgpu_pf_leave(home->pf);
	WRITE_ONCE(home->is_gone, true);
	vgpu_client_cancel(home, NULL, -ENODEV);
	vgpu_home_unlock(home);
	/* the timer wakes the thread, so it is cancelled first; no caller arms it any more */
	hrtimer_cancel(&home->service.timer);
	kthread_stop(home->service.thread);
	wake_up_all(&home->state_wait);
	wake_up_interruptible_poll(&home->ring.wait, EPOLLHUP);
}

/* The device will be reset, or lose its power: detach the core from it. */
void vgpu_home_park(struct vgpu_home *home)
{
	vgpu_home_lock(home);
	/* the core frees memory that the device writes to */
	pci_clear_master(home->pdev);
	home->is_device_parked = true;
	vgpu_pf_park(home->pf);
	vgpu_home_unlock(home);
}

/* The device is back. Return: 0, or the core's error; then the thread keeps trying. */
int vgpu_home_unpark(struct vgpu_home *home)
{
	int error;

	vgpu_home_lock(home);
	home->is_device_parked = false;
	if (home->is_device_lost) {
		/* the state of the device could not be saved or restored */
		error = try_attach(home);
	} else {
		/* the code that reset the device has restored it and drops its saved state */
		if (vgpu_linux_is_device_there(home))
			pci_save_state(home->pdev);
		error = attach(home);
	}
	vgpu_home_unlock(home);
	/* events that came while the core was parked were not served, and do not come again */
	set_bit(VGPU_WAKEUP_INTERRUPT, &home->service.wakeups);
	vgpu_home_wake(home, VGPU_WAKEUP_TIMER);
	return error;
}
