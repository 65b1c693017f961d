// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calls the error handlers of a driver as the kernel does after an uncorrectable error of its
 * device (Documentation/PCI/pci-error-recovery.rst): error_detected, a reset of the bus,
 * slot_reset, resume. Test-only: the device has no Advanced Error Reporting to inject errors into.
 *
 *   echo 0000:01:00.0 >/sys/module/vgpu_test_recovery/parameters/frozen   recovers
 *   echo 0000:01:00.0 >/sys/module/vgpu_test_recovery/parameters/failed   ends at error_detected
 *   echo 0000:01:00.0 >/sys/module/vgpu_test_recovery/parameters/stuck    cannot be reset
 */
#include <linux/module.h>
#include <linux/pci.h>

static struct pci_dev* find(const char* text) {
    unsigned int domain, bus, slot, function;

    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) return NULL;
    return pci_get_domain_bus_and_slot((int)domain, bus, PCI_DEVFN(slot, function));
}

static const struct pci_error_handlers* handlers_of(struct pci_dev* device) {
    return device->dev.driver ? to_pci_driver(device->dev.driver)->err_handler : NULL;
}

/* the device's lock is held, as it is in pcie_do_recovery() */
static int recover(struct pci_dev* device, const struct pci_error_handlers* handlers) {
    struct pci_dev* port = device->bus->self;
    pci_ers_result_t answer;
    int error;

    device->error_state = pci_channel_io_frozen;
    answer = handlers->error_detected(device, pci_channel_io_frozen);
    if (answer != PCI_ERS_RESULT_NEED_RESET) return -EPROTO;
    pci_cfg_access_lock(port);
    error = pci_bridge_secondary_bus_reset(port);
    pci_cfg_access_unlock(port);
    if (error) return error;
    device->error_state = pci_channel_io_normal;
    if (handlers->slot_reset(device) != PCI_ERS_RESULT_RECOVERED) return -EPROTO;
    handlers->resume(device);
    return 0;
}

static int abandon(struct pci_dev* device, const struct pci_error_handlers* handlers) {
    device->error_state = pci_channel_io_perm_failure;
    return handlers->error_detected(device, pci_channel_io_perm_failure) ==
                   PCI_ERS_RESULT_DISCONNECT
               ? 0
               : -EPROTO;
}

/* the driver requests a reset, but the bus cannot be reset */
static int get_stuck(struct pci_dev* device, const struct pci_error_handlers* handlers) {
    device->error_state = pci_channel_io_frozen;
    if (handlers->error_detected(device, pci_channel_io_frozen) != PCI_ERS_RESULT_NEED_RESET)
        return -EPROTO;
    device->error_state = pci_channel_io_perm_failure;
    return 0;
}

static int report(const char* text, const struct kernel_param* parameter) {
    int (*const act)(struct pci_dev*, const struct pci_error_handlers*) = parameter->arg;
    struct pci_dev* device = find(text);
    int error = -ENODEV;

    if (!device) return -ENODEV;
    device_lock(&device->dev);
    if (handlers_of(device)) error = act(device, handlers_of(device));
    device_unlock(&device->dev);
    pci_dev_put(device);
    return error;
}

static const struct kernel_param_ops operations = {.set = report};

module_param_cb(frozen, &operations, recover, 0200);
MODULE_PARM_DESC(frozen, "the device that has an error, and recovers");
module_param_cb(failed, &operations, abandon, 0200);
MODULE_PARM_DESC(failed, "the device that has failed for good");
module_param_cb(stuck, &operations, get_stuck, 0200);
MODULE_PARM_DESC(stuck, "the device that has an error, and cannot be reset");

MODULE_DESCRIPTION("Error recovery of PCI devices (test only)");
MODULE_LICENSE("Dual MIT/GPL");
