// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PCI functions of VFs: sriov_numvfs, and the driver that gets a function.
 *
 * A new function belongs to no driver (driver_override "none"), so no driver is probed while its
 * VF has no resources. When the VF is provisioned, a separate work item hands the function to
 * the driver that "handover" names. Functions and their drivers come and go through the PCI bus'
 * notifier, which runs under the driver core's locks: it takes home->lock and functions.lock,
 * never home->admin, whose holders call the driver core.
 */
#include <linux/device.h>
#include <linux/kmod.h>
#include <linux/module.h>

#include "pf-driver/hw/pci.h"
#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/home.h"

#define OVERRIDE_NOBODY "none"

static const char *const overrides[VGPU_HANDOVERS] = {
	[VGPU_HANDOVER_NONE] = OVERRIDE_NOBODY,
	[VGPU_HANDOVER_VFIO] = "vfio-pci",
	[VGPU_HANDOVER_HOST] = NULL,
};

/* ---- functions ---- */

static struct pci_dev *get_function(struct vgpu_home *home, u32 vf)
{
	struct pci_dev *function;

	spin_lock(&home->functions.lock);
	function = pci_dev_get(home->vfs[vf].function);
	spin_unlock(&home->functions.lock);
	return function;
}

static void set_function(struct vgpu_home_vf *vf, struct pci_dev *function)
{
	struct pci_dev *before;

	spin_lock(&vf->home->functions.lock);
	before = vf->function;
	vf->function = pci_dev_get(function);
	spin_unlock(&vf->home->functions.lock);
	pci_dev_put(before);
}

static struct vgpu_home_vf *vf_of(struct vgpu_home *home, struct pci_dev *function)
{
	int id;

	if (!function->is_virtfn || pci_physfn(function) != home->pdev)
		return NULL;
	id = pci_iov_vf_id(function);
	if (id < 0 || id >= (int)VGPU_PF_MAX_VFS)
		return NULL;
	return &home->vfs[id + 1];
}

static bool is_bound(struct pci_dev *function)
{
	return READ_ONCE(function->dev.driver) != NULL;
}

static void function_appears(struct vgpu_home_vf *vf, struct pci_dev *function)
{
	/* before any driver is probed */
	if (vgpu_set_driver_override(function, OVERRIDE_NOBODY))
		dev_warn(&vf->home->pdev->dev, "VF%u: drivers may be probed early\n", vf->number);
	set_function(vf, function);
}

/*
 * A driver has come or gone. A driver that comes may have attached the VF, and a driver that goes
 * may leave the function attached. So the core checks before the next client can attach.
 */
static void driver_has_changed(struct vgpu_home_vf *vf)
{
	struct vgpu_home *home = vf->home;

	vgpu_home_lock(home);
	if (!home->is_gone && !home->is_device_parked)
		vgpu_pf_interrupt(home->pf);
	vgpu_home_unlock(home);
	WRITE_ONCE(vf->is_driver_changing, false);
	/* the user of the VF may have changed */
	schedule_work(&home->service.chores);
}

static int on_bus_event(struct notifier_block *block, unsigned long action, void *data)
{
	struct vgpu_home *home = container_of(block, struct vgpu_home, functions.notifier);
	struct pci_dev *function = to_pci_dev(data);
	struct vgpu_home_vf *vf = vf_of(home, function);

	if (!vf)
		return NOTIFY_DONE;
	switch (action) {
	case BUS_NOTIFY_ADD_DEVICE:
		function_appears(vf, function);
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
		driver_has_changed(vf);
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

/* ---- handover ---- */

static const char *wanted_override(const struct vgpu_home_vf *vf)
{
	enum vgpu_pf_vf_state state = READ_ONCE(vf->seen.state);
	bool has_resources = state != VGPU_PF_VF_ABSENT && state != VGPU_PF_VF_SCRUBBING;

	return has_resources ? overrides[vf->handover] : OVERRIDE_NOBODY;
}

static void warn_not_handed_over(const struct vgpu_home_vf *vf, int error)
{
	dev_warn(&vf->home->pdev->dev, "VF%u: could not be handed over (%d)\n", vf->number, error);
}

/* a driver may take seconds to load, and wait for the PF core meanwhile, so no lock is held */
static void do_probe(struct work_struct *work)
{
	struct vgpu_home_vf *vf = container_of(work, struct vgpu_home_vf, probe);
	struct pci_dev *function = get_function(vf->home, vf->number);
	int error = function ? device_attach(&function->dev) : 0;

	if (error < 0)
		warn_not_handed_over(vf, error);
	pci_dev_put(function);
}

/* an idle driver such as vfio-pci would allow users to open a VF without resources */
static void take_back(struct vgpu_home_vf *vf, struct pci_dev *function)
{
	if (is_bound(function) && !vgpu_sriov_is_busy(vf->home, vf->number))
		device_release_driver(&function->dev);
}

/*
 * Gives the function to the driver that "handover" names. If this driver has the function already,
 * it keeps the function while the VF has resources. Done once per grant of resources: a driver that
 * fails would be probed without end, because its attempt changes the VF's state.
 */
static void hand_over(struct vgpu_home_vf *vf, struct pci_dev *function)
{
	const char *override = wanted_override(vf);
	bool is_gift = !override || strcmp(override, OVERRIDE_NOBODY) != 0;
	int error;

	if (is_gift && (is_bound(function) || vf->is_offered))
		return;
	/* set the override first, so that the old driver does not get the function again */
	error = vgpu_set_driver_override(function, override);
	/* after a failure the function is offered again at the next change */
	vf->is_offered = is_gift && !error;
	if (error)
		warn_not_handed_over(vf, error);
	else if (is_gift)
		queue_work(system_unbound_wq, &vf->probe);
	else
		take_back(vf, function);
}

/* Wait until the driver of a function handed over has been probed; home->admin is not held. */
void vgpu_sriov_wait_for_probe(struct vgpu_home *home, u32 vf)
{
	flush_work(&home->vfs[vf].probe);
}

/* Hand over, or take back, functions of VFs that got or lost resources. home->admin is held. */
void vgpu_sriov_hand_over(struct vgpu_home *home)
{
	for (u32 i = 1; i <= home->total_vfs; i++) {
		struct pci_dev *function = get_function(home, i);

		/* if others changed the override since, their driver may keep it */
		if (function && home->vfs[i].handover != VGPU_HANDOVER_NONE)
			hand_over(&home->vfs[i], function);
		pci_dev_put(function);
	}
}

/*
 * Is the function in use? A driver that only waits, as vfio-pci until it is opened, does not count.
 */
bool vgpu_sriov_is_busy(struct vgpu_home *home, u32 vf)
{
	struct pci_dev *function = get_function(home, vf);
	bool is_busy = false;

	if (!function)
		return false;
	is_busy = (is_bound(function) && pci_is_enabled(function)) ||
		  (function->dev_flags & PCI_DEV_FLAGS_ASSIGNED);
	pci_dev_put(function);
	return is_busy;
}

/*
 * Whether a new attachment of the VF is that of a driver of this host. A driver that only waits
 * does not attach. home->lock may be held.
 */
bool vgpu_sriov_is_drivers(struct vgpu_home *home, u32 vf)
{
	return READ_ONCE(home->vfs[vf].is_driver_changing) || vgpu_sriov_is_busy(home, vf);
}

static int check_handover(struct vgpu_home *home, enum vgpu_handover handover)
{
	if (handover != VGPU_HANDOVER_VFIO)
		return 0;
	/* without an IOMMU, a guest's DMA would reach all of the host */
	if (!device_iommu_mapped(&home->pdev->dev))
		return -EOPNOTSUPP;
	request_module("vfio-pci");
	return 0;
}

/*
 * Set the driver that gets a VF's function; home->admin is held. Return: 0, -EBUSY while the
 * function is in use, -EOPNOTSUPP for vfio-pci without an IOMMU.
 */
int vgpu_sriov_set_handover(struct vgpu_home *home, u32 vf, enum vgpu_handover handover)
{
	struct pci_dev *function;
	int error = check_handover(home, handover);

	if (error)
		return error;
	if (vgpu_sriov_is_busy(home, vf))
		return -EBUSY;
	home->vfs[vf].handover = handover;
	function = get_function(home, vf);
	if (!function)
		return 0;
	device_release_driver(&function->dev);
	home->vfs[vf].is_offered = false;
	hand_over(&home->vfs[vf], function);
	pci_dev_put(function);
	return 0;
}

/* ---- numvfs ---- */

static void link_functions(struct vgpu_home *home)
{
	for (u32 i = 1; i <= home->total_vfs; i++) {
		struct pci_dev *function = get_function(home, i);
		struct kobject *dir = vgpu_sysfs_kobject(home->vfs[i].dir);

		if (function && dir && !home->vfs[i].has_link)
			home->vfs[i].has_link =
				sysfs_create_link(dir, &function->dev.kobj, "device") == 0;
		pci_dev_put(function);
	}
}

static void unlink_functions(struct vgpu_home *home)
{
	for (u32 i = 1; i <= home->total_vfs; i++) {
		struct kobject *dir = vgpu_sysfs_kobject(home->vfs[i].dir);

		if (home->vfs[i].has_link && dir)
			sysfs_remove_link(dir, "device");
		home->vfs[i].has_link = false;
		home->vfs[i].is_offered = false;
	}
}

static int enable(struct vgpu_home *home, int count)
{
	int error = vgpu_policy_provision_fair(home, (u32)count);

	if (!error)
		error = pci_enable_sriov(home->pdev, count);
	if (error) {
		vgpu_policy_release_auto(home);
		return error;
	}
	link_functions(home);
	vgpu_sriov_hand_over(home);
	return count;
}

/* only the lease holder may release what it has provisioned */
static bool is_claimed(struct vgpu_home *home, u32 vf)
{
	return vgpu_pf_view_is_leased(home->pf) && vgpu_policy_quota(home, vf);
}

static void reopen(struct vgpu_home *home, u32 last)
{
	for (u32 i = 1; i <= last; i++)
		vgpu_policy_reopen(home, i);
}

/* no process may open a VF while its function and resources go */
static int close_all(struct vgpu_home *home)
{
	for (u32 i = 1; i <= home->total_vfs; i++)
		if (is_claimed(home, i) || vgpu_policy_close(home, i)) {
			dev_warn(&home->pdev->dev, "VF%u is in use\n", i);
			reopen(home, i - 1);
			return -EBUSY;
		}
	return 0;
}

/* Remove all functions; home->admin is held. */
void vgpu_sriov_disable(struct vgpu_home *home)
{
	unlink_functions(home);
	pci_disable_sriov(home->pdev);
	vgpu_policy_release_auto(home);
}

static int disable_unused(struct vgpu_home *home)
{
	int error = pci_vfs_assigned(home->pdev) ? -EBUSY : close_all(home);

	if (error)
		return error;
	vgpu_sriov_disable(home);
	reopen(home, home->total_vfs);
	return 0;
}

/* sriov_numvfs was written, under the PF's device lock. Return: the number of VFs, or an error. */
int vgpu_sriov_configure(struct pci_dev *pdev, int count)
{
	struct vgpu_home *home = pci_get_drvdata(pdev);
	int result;

	mutex_lock(&home->admin);
	if (count > (int)home->total_vfs) {
		result = -ERANGE;
	} else if (count) {
		result = pci_num_vf(pdev) ? -EBUSY : enable(home, count);
	} else {
		result = disable_unused(home);
	}
	mutex_unlock(&home->admin);
	for (u32 i = 1; i <= home->total_vfs; i++)
		vgpu_sriov_wait_for_probe(home, i);
	return result;
}

/* ---- start and end ---- */

/* functions that a previous driver left enabled */
static void adopt_functions(struct vgpu_home *home)
{
	struct pci_dev *function = NULL;
	struct vgpu_home_vf *vf;

	while ((function = pci_get_device(home->pdev->vendor, PCI_ANY_ID, function))) {
		vf = vf_of(home, function);
		if (vf)
			set_function(vf, function);
	}
	link_functions(home);
}

void vgpu_sriov_prepare(struct vgpu_home *home)
{
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++)
		INIT_WORK(&home->vfs[i].probe, do_probe);
}

/* Watch functions come and go; sysfs is there. */
int vgpu_sriov_init(struct vgpu_home *home)
{
	int error;

	home->functions.notifier.notifier_call = on_bus_event;
	error = bus_register_notifier(&pci_bus_type, &home->functions.notifier);
	if (!error)
		adopt_functions(home);
	return error;
}

/* Remove the functions, and stop watching. */
void vgpu_sriov_fini(struct vgpu_home *home)
{
	mutex_lock(&home->admin);
	vgpu_sriov_disable(home);
	mutex_unlock(&home->admin);
	bus_unregister_notifier(&pci_bus_type, &home->functions.notifier);
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++) {
		set_function(&home->vfs[i], NULL);
		cancel_work_sync(&home->vfs[i].probe);
	}
}
