// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Enables and disables the PCI functions of VFs (sriov_numvfs), and assigns drivers to them.
 *
 * At first, a new function gets no driver (driver_override "none"). Once the VF has resources, a
 * work item gives the function to the driver that "assignment_mode" names. A notifier of the PCI
 * bus reports functions and drivers that appear or vanish. The driver core calls the notifier with
 * its locks held, so the notifier takes platform->lock and functions.lock, but never
 * platform->admin, whose holders call the driver core.
 */
#include <linux/device.h>
#include <linux/kmod.h>
#include <linux/module.h>

#include "pf-driver/hw/pci.h"
#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/platform.h"

#define OVERRIDE_NOBODY "none"

static const char *const overrides[VGPU_ASSIGNMENT_MODES] = {
	[VGPU_ASSIGNMENT_MODE_NONE] = OVERRIDE_NOBODY,
	[VGPU_ASSIGNMENT_MODE_VFIO] = "vfio-pci",
	[VGPU_ASSIGNMENT_MODE_HOST] = NULL,
};

/* ---- functions ---- */

static struct pci_dev *get_function(struct vgpu_platform *platform, u32 vf)
{
	struct pci_dev *function;

	spin_lock(&platform->functions.lock);
	function = pci_dev_get(platform->vfs[vf].function);
	spin_unlock(&platform->functions.lock);
	return function;
}

static void set_function(struct vgpu_platform_vf *vf, struct pci_dev *function)
{
	struct pci_dev *before;

	spin_lock(&vf->platform->functions.lock);
	before = vf->function;
	vf->function = pci_dev_get(function);
	spin_unlock(&vf->platform->functions.lock);
	pci_dev_put(before);
}

static struct vgpu_platform_vf *vf_of(struct vgpu_platform *platform, struct pci_dev *function)
{
	int id;

	if (!function->is_virtfn || pci_physfn(function) != platform->pdev)
		return NULL;
	id = pci_iov_vf_id(function);
	if (id < 0 || id >= (int)VGPU_PF_MAX_VFS)
		return NULL;
	return &platform->vfs[id + 1];
}

static bool is_bound(struct pci_dev *function)
{
	return READ_ONCE(function->dev.driver) != NULL;
}

static void handle_new_function(struct vgpu_platform_vf *vf, struct pci_dev *function)
{
	/* before any driver is probed */
	if (vgpu_set_driver_override(function, OVERRIDE_NOBODY))
		dev_warn(&vf->platform->pdev->dev, "VF%u: drivers may be probed early\n",
			 vf->number);
	set_function(vf, function);
}

/*
 * Handles that a driver was bound or unbound. The driver may have attached the VF, which the device
 * reports by an interrupt. The core serves this interrupt now: while is_driver_changing is true, a
 * new attachment counts as the driver's (vgpu_sriov_is_attached_by_driver()), not as that of a
 * client (such as QEMU) of the vfio-user socket that softgpu offers for the VF in addition to the
 * PCI function.
 */
static void handle_driver_change(struct vgpu_platform_vf *vf)
{
	struct vgpu_platform *platform = vf->platform;

	vgpu_platform_lock(platform);
	if (!platform->is_gone && !platform->is_device_suspended)
		vgpu_pf_interrupt(platform->pf);
	vgpu_platform_unlock(platform);
	WRITE_ONCE(vf->is_driver_changing, false);
	/* the user of the VF may have changed */
	schedule_work(&platform->service.deferred);
}

static int on_bus_event(struct notifier_block *block, unsigned long action, void *data)
{
	struct vgpu_platform *platform =
		container_of(block, struct vgpu_platform, functions.notifier);
	struct pci_dev *function = to_pci_dev(data);
	struct vgpu_platform_vf *vf = vf_of(platform, function);

	if (!vf)
		return NOTIFY_DONE;
	switch (action) {
	case BUS_NOTIFY_ADD_DEVICE:
		handle_new_function(vf, function);
		return NOTIFY_OK;
	case BUS_NOTIFY_REMOVED_DEVICE:
		set_function(vf, NULL);
		return NOTIFY_OK;
	case BUS_NOTIFY_BIND_DRIVER:
	case BUS_NOTIFY_UNBIND_DRIVER:
		WRITE_ONCE(vf->is_driver_changing, true);
		return NOTIFY_OK;
	case BUS_NOTIFY_BOUND_DRIVER:
	case BUS_NOTIFY_UNBOUND_DRIVER:
	case BUS_NOTIFY_DRIVER_NOT_BOUND:
		handle_driver_change(vf);
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

/* ---- assignment mode ---- */

static const char *driver_override(const struct vgpu_platform_vf *vf)
{
	enum vgpu_pf_vf_state state = READ_ONCE(vf->seen.state);
	bool has_resources = state != VGPU_PF_VF_ABSENT && state != VGPU_PF_VF_SCRUBBING;

	return has_resources ? overrides[vf->assignment_mode] : OVERRIDE_NOBODY;
}

static void warn_not_assigned(const struct vgpu_platform_vf *vf, int error)
{
	dev_warn(&vf->platform->pdev->dev, "VF%u: the assignment mode could not be set (%d)\n",
		 vf->number, error);
}

/* probes the driver; holds no lock, because a probe may take seconds and need the PF core */
static void do_probe(struct work_struct *work)
{
	struct vgpu_platform_vf *vf = container_of(work, struct vgpu_platform_vf, probe);
	struct pci_dev *function = get_function(vf->platform, vf->number);
	int error = function ? device_attach(&function->dev) : 0;

	if (error < 0)
		warn_not_assigned(vf, error);
	pci_dev_put(function);
}

/* unbinds an idle driver: vfio-pci, for one, would let users open a VF without resources */
static void reclaim(struct vgpu_platform_vf *vf, struct pci_dev *function)
{
	if (is_bound(function) && !vgpu_sriov_is_busy(vf->platform, vf->number))
		device_release_driver(&function->dev);
}

/*
 * If the VF has resources, gives the function to the driver that "assignment_mode" names, but only
 * once after the VF got them: the end of each probe queues the deferred work
 * (handle_driver_change()), which calls this function again, so a driver whose probe fails would be
 * probed again and again. A driver that is bound already keeps the function. If the VF has no
 * resources, or the mode is "none", unbinds an idle driver.
 */
static void assign_driver(struct vgpu_platform_vf *vf, struct pci_dev *function)
{
	const char *override = driver_override(vf);
	bool gets_driver = !override || strcmp(override, OVERRIDE_NOBODY) != 0;
	int error;

	if (gets_driver && (is_bound(function) || vf->is_assigned))
		return;
	/* set the override first, so that the old driver does not get the function again */
	error = vgpu_set_driver_override(function, override);
	/* after a failure, the next run of the deferred work (pci.c) tries again */
	vf->is_assigned = gets_driver && !error;
	if (error)
		warn_not_assigned(vf, error);
	else if (gets_driver)
		queue_work(system_unbound_wq, &vf->probe);
	else
		reclaim(vf, function);
}

/* Wait until a function's driver has been probed; platform->admin must not be held. */
void vgpu_sriov_wait_for_probe(struct vgpu_platform *platform, u32 vf)
{
	flush_work(&platform->vfs[vf].probe);
}

/*
 * Assign drivers to functions of VFs that got resources, and reclaim functions of VFs that lost
 * their resources. platform->admin is held.
 */
void vgpu_sriov_assign_driver(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= platform->total_vfs; i++) {
		struct pci_dev *function = get_function(platform, i);

		/* in mode NONE, a driver that an administrator has bound keeps the function */
		if (function && platform->vfs[i].assignment_mode != VGPU_ASSIGNMENT_MODE_NONE)
			assign_driver(&platform->vfs[i], function);
		pci_dev_put(function);
	}
}

/*
 * Return: true if the function is in use: a driver has enabled the function, or a VM has it. A
 * bound driver that only waits, as vfio-pci does until a user opens the function, does not count.
 */
bool vgpu_sriov_is_busy(struct vgpu_platform *platform, u32 vf)
{
	struct pci_dev *function = get_function(platform, vf);
	bool is_busy = false;

	if (!function)
		return false;
	is_busy = (is_bound(function) && pci_is_enabled(function)) ||
		  (function->dev_flags & PCI_DEV_FLAGS_ASSIGNED);
	pci_dev_put(function);
	return is_busy;
}

/*
 * Return: true if an attachment of the VF that the core has just seen comes from a driver of this
 * host; false if it comes from a client (such as QEMU) of the VF's vfio-user socket. platform->lock
 * may be held.
 */
bool vgpu_sriov_is_attached_by_driver(struct vgpu_platform *platform, u32 vf)
{
	return READ_ONCE(platform->vfs[vf].is_driver_changing) || vgpu_sriov_is_busy(platform, vf);
}

static int prepare_assignment_mode(struct vgpu_platform *platform,
				   enum vgpu_assignment_mode assignment_mode)
{
	if (assignment_mode != VGPU_ASSIGNMENT_MODE_VFIO)
		return 0;
	/* without an IOMMU, a guest's DMA would reach all memory of the host */
	if (!device_iommu_mapped(&platform->pdev->dev))
		return -EOPNOTSUPP;
	request_module("vfio-pci");
	return 0;
}

/*
 * Set the driver that gets a VF's function; platform->admin is held. Return: 0, -EBUSY while the
 * function is in use, -EOPNOTSUPP for vfio-pci without an IOMMU.
 */
int vgpu_sriov_set_assignment_mode(struct vgpu_platform *platform, u32 vf,
				   enum vgpu_assignment_mode assignment_mode)
{
	struct pci_dev *function;
	int error = prepare_assignment_mode(platform, assignment_mode);

	if (error)
		return error;
	if (vgpu_sriov_is_busy(platform, vf))
		return -EBUSY;
	platform->vfs[vf].assignment_mode = assignment_mode;
	function = get_function(platform, vf);
	if (!function)
		return 0;
	device_release_driver(&function->dev);
	platform->vfs[vf].is_assigned = false;
	assign_driver(&platform->vfs[vf], function);
	pci_dev_put(function);
	return 0;
}

/* ---- sriov_numvfs ---- */

static void link_functions(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= platform->total_vfs; i++) {
		struct pci_dev *function = get_function(platform, i);
		struct kobject *dir = vgpu_sysfs_kobject(platform->vfs[i].dir);

		if (function && dir && !platform->vfs[i].has_link)
			platform->vfs[i].has_link =
				sysfs_create_link(dir, &function->dev.kobj, "device") == 0;
		pci_dev_put(function);
	}
}

static void unlink_functions(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= platform->total_vfs; i++) {
		struct kobject *dir = vgpu_sysfs_kobject(platform->vfs[i].dir);

		if (platform->vfs[i].has_link && dir)
			sysfs_remove_link(dir, "device");
		platform->vfs[i].has_link = false;
		platform->vfs[i].is_assigned = false;
	}
}

static int enable_functions(struct vgpu_platform *platform, int count)
{
	int error = vgpu_policy_provision_fair(platform, (u32)count);

	if (!error)
		error = pci_enable_sriov(platform->pdev, count);
	if (error) {
		vgpu_policy_release_auto(platform);
		return error;
	}
	link_functions(platform);
	vgpu_sriov_assign_driver(platform);
	return count;
}

/* true if the VF has resources that only the lease holder may release */
static bool is_under_lease(struct vgpu_platform *platform, u32 vf)
{
	return vgpu_pf_view_is_leased(platform->pf) && vgpu_policy_quota(platform, vf);
}

static void reopen(struct vgpu_platform *platform, u32 last)
{
	for (u32 i = 1; i <= last; i++)
		vgpu_policy_reopen(platform, i);
}

/* closes all VFs, so that no process opens a VF while its function and resources are removed */
static int close_all(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= platform->total_vfs; i++)
		if (is_under_lease(platform, i) || vgpu_policy_close(platform, i)) {
			dev_warn(&platform->pdev->dev, "VF%u is in use\n", i);
			reopen(platform, i - 1);
			return -EBUSY;
		}
	return 0;
}

/*
 * Remove all functions, and release the VFs that sriov_numvfs provisioned. platform->admin is held.
 */
void vgpu_sriov_disable(struct vgpu_platform *platform)
{
	unlink_functions(platform);
	pci_disable_sriov(platform->pdev);
	vgpu_policy_release_auto(platform);
}

static int disable_unused(struct vgpu_platform *platform)
{
	int error = pci_vfs_assigned(platform->pdev) ? -EBUSY : close_all(platform);

	if (error)
		return error;
	vgpu_sriov_disable(platform);
	reopen(platform, platform->total_vfs);
	return 0;
}

/*
 * Handle a write to sriov_numvfs. The PF's device lock is held. Return: the number of VFs, or a
 * negative errno.
 */
int vgpu_sriov_configure(struct pci_dev *pdev, int count)
{
	struct vgpu_platform *platform = pci_get_drvdata(pdev);
	int result;

	mutex_lock(&platform->admin);
	if (count > (int)platform->total_vfs) {
		result = -ERANGE;
	} else if (count) {
		result = pci_num_vf(pdev) ? -EBUSY : enable_functions(platform, count);
	} else {
		result = disable_unused(platform);
	}
	mutex_unlock(&platform->admin);
	for (u32 i = 1; i <= platform->total_vfs; i++)
		vgpu_sriov_wait_for_probe(platform, i);
	return result;
}

/* ---- start and end ---- */

/* adopts functions that a previous driver left enabled */
static void adopt_functions(struct vgpu_platform *platform)
{
	struct pci_dev *function = NULL;
	struct vgpu_platform_vf *vf;

	while ((function = pci_get_device(platform->pdev->vendor, PCI_ANY_ID, function))) {
		vf = vf_of(platform, function);
		if (vf)
			set_function(vf, function);
	}
	link_functions(platform);
}

/* Initialize the work items; must come before the core starts. */
void vgpu_sriov_prepare(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++)
		INIT_WORK(&platform->vfs[i].probe, do_probe);
}

/*
 * Begin to watch functions that appear and vanish. The directories in sysfs must exist. Return: 0
 * or a negative errno.
 */
int vgpu_sriov_init(struct vgpu_platform *platform)
{
	int error;

	platform->functions.notifier.notifier_call = on_bus_event;
	error = bus_register_notifier(&pci_bus_type, &platform->functions.notifier);
	if (!error)
		adopt_functions(platform);
	return error;
}

/* Remove the functions, and stop watching the PCI bus. */
void vgpu_sriov_fini(struct vgpu_platform *platform)
{
	mutex_lock(&platform->admin);
	vgpu_sriov_disable(platform);
	mutex_unlock(&platform->admin);
	bus_unregister_notifier(&pci_bus_type, &platform->functions.notifier);
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++) {
		set_function(&platform->vfs[i], NULL);
		cancel_work_sync(&platform->vfs[i].probe);
	}
}
