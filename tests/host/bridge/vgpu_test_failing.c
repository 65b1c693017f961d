// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A driver for VFs that resets its function and then fails to probe, like a driver whose device
 * does not work. Test-only; tests/host/test_module.py counts its attempts, and
 * tests/host/test_kernel_log.py makes it warn.
 */
#include <linux/module.h>
#include <linux/pci.h>

#include "pf-driver/hw/pci.h"

static unsigned int probes;
module_param(probes, uint, 0444);
MODULE_PARM_DESC(probes, "attempts so far");

static bool warns;
module_param(warns, bool, 0444);
MODULE_PARM_DESC(warns, "the kernel's log gets a warning when the module is loaded");

static int probe(struct pci_dev* function, const struct pci_device_id* id) {
    probes++;
    if (pcie_flr(function)) pci_warn(function, "no FLR\n");
    return -EIO;
}

static const struct pci_device_id ids[] = {{PCI_DEVICE(VGPU_PCI_VENDOR_ATI, VGPU_PCI_DEVICE_VF)},
                                           {}};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver failing_driver = {
    .name = "vgpu_test_failing", .id_table = ids, .probe = probe};

static int __init start(void) {
    WARN(warns, "vgpu_test_failing was asked to warn\n");
    return pci_register_driver(&failing_driver);
}
module_init(start);

static void __exit end(void) {
    pci_unregister_driver(&failing_driver);
}
module_exit(end);

MODULE_DESCRIPTION("A VF driver that fails (test only)");
MODULE_LICENSE("Dual MIT/GPL");
