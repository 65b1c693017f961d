// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PCI driver: probe and remove, suspend, resets by the PCI core, errors of the bus.
 *
 * remove() is always safe: it removes the nodes, then the VFs' functions, then sysfs; it ends
 * requests with -ENODEV, and releases the device last. VFs keep their resources on the device, and
 * the next probe adopts these VFs; only the VFs that sriov_numvfs provisioned are released. Open
 * files keep only the platform's memory. The module cannot be unloaded while files are open or a VF
 * is in use.
 */
#include <linux/aer.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "pf-driver/hw/pci.h"
#include "pf-driver/linux/platform.h"

#define DMA_BITS   48	 /* width of the device's DMA addresses */
#define RECHECK_MS 1000u /* time between two checks whether a VF is still in use */

static bool unsafe_silicon;
module_param(unsafe_silicon, bool, 0444);
MODULE_PARM_DESC(unsafe_silicon, "drive PFs that are not softgpu; may hang machine and GPU");

static unsigned int time_scale = 1;
module_param(time_scale, uint, 0444);
MODULE_PARM_DESC(time_scale, "factor on waits for guests and the device, 1 to 1000");

static unsigned int max_gap_ms = VGPU_PF_MAX_GAP_DEFAULT_MS;
module_param(max_gap_ms, uint, 0444);
MODULE_PARM_DESC(max_gap_ms, "initial value of sriov_admin/max_gap_ms");

/* Get the module parameter time_scale, limited to its range. */
u32 vgpu_pci_time_scale(void)
{
	return clamp(time_scale, 1u, VGPU_PF_TIME_SCALE_MAX);
}

/* Get the module parameter max_gap_ms, limited to its range. Return: ms; 0: no limit. */
u32 vgpu_pci_max_gap_ms(void)
{
	return min(max_gap_ms, VGPU_MAX_GAP_MAX_MS);
}

/* refuses a PF that is not softgpu, unless the parameter unsafe_silicon is set */
static int check_silicon(struct pci_dev *pdev)
{
	bool is_softgpu = pdev->subsystem_vendor == VGPU_PCI_SUBVENDOR_PF &&
			  pdev->subsystem_device == VGPU_PCI_SUBDEVICE_PF;

	if (is_softgpu || unsafe_silicon)
		return 0;
	/* no message: another driver may take the device */
	return -ENODEV;
}

/* ---- deferred work: work that must not run under the core's lock ---- */

/*
 * Keeps the module loaded while a VF is in use. When a user closes a VF, vfio-pci disables the
 * function as its last step, which no event reports. So the check is repeated while a VF is in use.
 */
static void pin_module(struct vgpu_platform *platform)
{
	bool is_used = false;

	for (u32 i = 1; i <= platform->total_vfs; i++)
		is_used |= vgpu_policy_is_in_use(platform, i);
	if (is_used && !platform->functions.is_pinned)
		platform->functions.is_pinned = try_module_get(THIS_MODULE);
	if (is_used)
		schedule_delayed_work(&platform->service.recheck, msecs_to_jiffies(RECHECK_MS));
	if (!is_used && platform->functions.is_pinned) {
		platform->functions.is_pinned = false;
		module_put(THIS_MODULE);
	}
}

static void do_deferred(struct work_struct *work)
{
	struct vgpu_platform *platform = container_of(work, struct vgpu_platform, service.deferred);

	mutex_lock(&platform->admin);
	if (!READ_ONCE(platform->is_gone) && !platform->sysfs.is_gone) {
		vgpu_sysfs_notify(platform);
		vgpu_policy_release_remaining(platform);
		vgpu_plan_update(platform);
		vgpu_sriov_assign_driver(platform);
		pin_module(platform);
	}
	mutex_unlock(&platform->admin);
}

static void do_recheck(struct work_struct *work)
{
	struct vgpu_platform *platform =
		container_of(to_delayed_work(work), struct vgpu_platform, service.recheck);

	schedule_work(&platform->service.deferred);
}

/*
 * Cancels the deferred work twice, because recheck queues the deferred work again. Once the
 * platform is gone, the deferred work does nothing.
 */
static void cancel_deferred_work(struct vgpu_platform *platform)
{
	cancel_work_sync(&platform->service.deferred);
	cancel_delayed_work_sync(&platform->service.recheck);
	cancel_work_sync(&platform->service.deferred);
}

/* ---- probe and remove ---- */

static int map_bars(struct vgpu_platform *platform)
{
	struct pci_dev *pdev = platform->pdev;

	platform->bars.registers_bytes = pci_resource_len(pdev, VGPU_BAR_REGISTERS);
	platform->bars.vram_bytes = pci_resource_len(pdev, VGPU_BAR_VRAM);
	if (!platform->bars.registers_bytes || !platform->bars.vram_bytes) {
		dev_err(&pdev->dev, "BAR0 or BAR5 has no address: not enough MMIO space\n");
		return -ENODEV;
	}
	platform->bars.registers = ioremap(pci_resource_start(pdev, VGPU_BAR_REGISTERS),
					   platform->bars.registers_bytes);
	if (!platform->bars.registers)
		return -ENOMEM;
	platform->bars.vram =
		ioremap_wc(pci_resource_start(pdev, VGPU_BAR_VRAM), platform->bars.vram_bytes);
	if (platform->bars.vram)
		return 0;
	iounmap(platform->bars.registers);
	return -ENOMEM;
}

static void unmap_bars(struct vgpu_platform *platform)
{
	iounmap(platform->bars.vram);
	iounmap(platform->bars.registers);
}

/* saves the configuration space while the device is known to answer */
static int save_config_space(struct vgpu_platform *platform)
{
	pci_save_state(platform->pdev);
	platform->bars.pci_state = pci_store_saved_state(platform->pdev);
	return platform->bars.pci_state ? 0 : -ENOMEM;
}

/*
 * Restore the configuration space of a device that is back, from the copy that probe() saved. The
 * PCI core's own copy is unusable if the device did not answer before a sleep or a reset.
 */
void vgpu_pci_restore(struct vgpu_platform *platform)
{
	pci_load_saved_state(platform->pdev, platform->bars.pci_state);
	pci_restore_state(platform->pdev);
	pci_save_state(platform->pdev);
}

static int enable_device(struct vgpu_platform *platform)
{
	struct pci_dev *pdev = platform->pdev;
	int error = pci_enable_device(pdev);

	if (error)
		return error;
	error = pci_request_regions(pdev, VGPU_DRIVER_NAME);
	if (error)
		goto disable;
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(DMA_BITS));
	if (!error)
		error = map_bars(platform);
	if (error)
		goto release;
	pci_set_master(pdev);
	error = save_config_space(platform);
	if (!error)
		return 0;
	unmap_bars(platform);
release:
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
	return error;
}

static void disable_device(struct vgpu_platform *platform)
{
	pci_clear_master(platform->pdev);
	unmap_bars(platform);
	pci_release_regions(platform->pdev);
	/* an error recovery that failed has already disabled the device */
	if (pci_is_enabled(platform->pdev))
		pci_disable_device(platform->pdev);
	kfree(platform->bars.pci_state);
}

static int attach(struct vgpu_platform *platform)
{
	int error;

	vgpu_platform_lock(platform);
	error = vgpu_pf_attach(platform->pf);
	if (error)
		dev_err(&platform->pdev->dev, "%s\n", vgpu_pf_view_message(platform->pf));
	else
		platform->total_vfs = vgpu_pf_view_device(platform->pf)->total_vfs;
	vgpu_platform_unlock(platform);
	return error;
}

static void stop_core(struct vgpu_platform *platform)
{
	vgpu_linux_irq_fini(platform);
	vgpu_platform_stop(platform);
	cancel_deferred_work(platform);
	if (platform->functions.is_pinned)
		module_put(THIS_MODULE);
	platform->functions.is_pinned = false;
}

static int start_core(struct vgpu_platform *platform)
{
	int error = vgpu_platform_start(platform);

	if (error)
		return error;
	error = vgpu_linux_irq_init(platform);
	if (error) {
		vgpu_platform_stop(platform);
		return error;
	}
	error = attach(platform);
	if (error)
		stop_core(platform);
	return error;
}

static int publish(struct vgpu_platform *platform)
{
	int error = vgpu_sysfs_add(platform);

	if (!error)
		error = vgpu_sriov_init(platform);
	if (error)
		goto remove_sysfs;
	error = vgpu_nodes_add(platform);
	if (error)
		goto stop_sriov;
	vgpu_debugfs_add(platform);
	return 0;
stop_sriov:
	vgpu_sriov_fini(platform);
remove_sysfs:
	vgpu_sysfs_remove(platform);
	return error;
}

static int start_platform(struct vgpu_platform *platform)
{
	int error = enable_device(platform);

	if (error)
		return error;
	INIT_WORK(&platform->service.deferred, do_deferred);
	INIT_DELAYED_WORK(&platform->service.recheck, do_recheck);
	vgpu_sriov_prepare(platform);
	pci_set_drvdata(platform->pdev, platform);
	error = start_core(platform);
	if (error)
		goto disable;
	error = publish(platform);
	if (error)
		goto stop;
	return 0;
stop:
	stop_core(platform);
disable:
	disable_device(platform);
	return error;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct vgpu_platform *platform;
	int error = check_silicon(pdev);

	if (error)
		return error;
	platform = vgpu_nodes_make_platform(pdev);
	if (IS_ERR(platform))
		return PTR_ERR(platform);
	error = start_platform(platform);
	if (error) {
		pci_set_drvdata(pdev, NULL);
		put_device(platform->device);
	}
	return error;
}

static void remove(struct pci_dev *pdev)
{
	struct vgpu_platform *platform = pci_get_drvdata(pdev);

	vgpu_debugfs_remove(platform);
	vgpu_nodes_remove(platform);
	vgpu_sriov_fini(platform);
	vgpu_sysfs_remove(platform);
	stop_core(platform);
	disable_device(platform);
	pci_set_drvdata(pdev, NULL);
	put_device(platform->device);
}

/* after kexec, the device must not write to the memory of the next kernel */
static void shutdown(struct pci_dev *pdev)
{
	struct vgpu_platform *platform = pci_get_drvdata(pdev);

	vgpu_platform_lock(platform);
	pci_clear_master(pdev);
	vgpu_pf_shutdown(platform->pf);
	platform->is_device_suspended = true;
	vgpu_platform_unlock(platform);
}

/* ---- power, resets, errors ---- */

/* refuses while a VF is in use, because the guest's VRAM would be lost */
static int suspend(struct device *dev)
{
	struct vgpu_platform *platform = dev_get_drvdata(dev);

	for (u32 i = 1; i <= platform->total_vfs; i++)
		if (vgpu_policy_is_in_use(platform, i)) {
			dev_warn(dev, "VF%u is in use: not suspended\n", i);
			return -EBUSY;
		}
	vgpu_platform_suspend(platform);
	return 0;
}

static int resume(struct device *dev)
{
	return vgpu_platform_unsuspend(dev_get_drvdata(dev));
}

static DEFINE_SIMPLE_DEV_PM_OPS(power_operations, suspend, resume);

static void reset_prepare(struct pci_dev *pdev)
{
	vgpu_platform_suspend(pci_get_drvdata(pdev));
}

static void reset_done(struct pci_dev *pdev)
{
	vgpu_platform_unsuspend(pci_get_drvdata(pdev));
}

static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	vgpu_platform_suspend(pci_get_drvdata(pdev));
	if (state == pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_DISCONNECT;
	/* a failed recovery from an earlier error has already disabled the device */
	if (pci_is_enabled(pdev))
		pci_disable_device(pdev);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	if (pci_enable_device(pdev))
		return PCI_ERS_RESULT_DISCONNECT;
	vgpu_pci_restore(pci_get_drvdata(pdev));
	return PCI_ERS_RESULT_RECOVERED;
}

static void error_resume(struct pci_dev *pdev)
{
	vgpu_platform_unsuspend(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers error_handlers = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.resume = error_resume,
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};

/* the module's aliases have only the ids of softgpu, so real silicon does not load the module */
static const struct pci_device_id alias_ids[] = {
	{PCI_DEVICE_SUB(VGPU_PCI_VENDOR_ATI, VGPU_PCI_DEVICE_PF, VGPU_PCI_SUBVENDOR_PF,
			VGPU_PCI_SUBDEVICE_PF)},
	{},
};
MODULE_DEVICE_TABLE(pci, alias_ids);

static const struct pci_device_id probe_ids[] = {
	{PCI_DEVICE(VGPU_PCI_VENDOR_ATI, VGPU_PCI_DEVICE_PF)},
	{},
};

static struct pci_driver driver = {
	.name = VGPU_DRIVER_NAME,
	.id_table = probe_ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.sriov_configure = vgpu_sriov_configure,
	.err_handler = &error_handlers,
	.driver.pm = pm_sleep_ptr(&power_operations),
};

static int __init vgpu_pf_module_init(void)
{
	int error = vgpu_nodes_init();

	if (error)
		return error;
	vgpu_debugfs_init();
	error = pci_register_driver(&driver);
	if (error) {
		vgpu_debugfs_exit();
		vgpu_nodes_exit();
	}
	return error;
}
module_init(vgpu_pf_module_init);

static void __exit vgpu_pf_module_exit(void)
{
	pci_unregister_driver(&driver);
	vgpu_debugfs_exit();
	vgpu_nodes_exit();
}
module_exit(vgpu_pf_module_exit);

MODULE_DESCRIPTION("vgpu PF driver: partitions an SR-IOV GPU");
MODULE_LICENSE("Dual MIT/GPL");
