// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Test-only: a PCI host bridge behind one PCI endpoint, softgpu's "host view".
 *
 * The endpoint's BARs are a configuration window (ECAM), a 32-bit memory window and a 64-bit
 * prefetchable one. The module opens a PCI domain of its own on them, in which the kernel finds a
 * root port, the PF and its VFs as it would on a machine with the card. Interrupts need nothing
 * here: functions behind the bridge send their messages themselves.
 */
#include <linux/module.h>
#include <linux/pci-ecam.h>
#include <linux/pci.h>

#include "pf-driver/hw/pci.h"

static int domain = 1;
module_param(domain, int, 0444);
MODULE_PARM_DESC(domain, "PCI domain number of the hierarchy behind the endpoint (default 1)");

/**
 * struct test_bridge - the domain behind one endpoint; lives in its host bridge
 * @sysdata: x86's data of every bus of the domain, from which bridge_of() gets here
 * @host: the host bridge, which owns this
 * @config: the configuration window
 * @config_bytes: its size
 * @buses: bus numbers the configuration window has room for
 * @low: the 32-bit window
 * @high: the 64-bit prefetchable window
 */
struct test_bridge {
    struct pci_sysdata sysdata;
    struct pci_host_bridge* host;
    void __iomem* config;
    resource_size_t config_bytes;
    struct resource buses;
    struct resource low;
    struct resource high;
};

static struct test_bridge* bridge_of(struct pci_bus* bus) {
    return container_of(bus->sysdata, struct test_bridge, sysdata);
}

static void __iomem* map_config(struct pci_bus* bus, unsigned int devfn, int where) {
    struct test_bridge* bridge = bridge_of(bus);
    resource_size_t at = PCIE_ECAM_OFFSET(bus->number, devfn, where);

    return at < bridge->config_bytes ? bridge->config + at : NULL;
}

/* A configuration write must be over before the CPU goes on: the read waits for it. */
static int write_config(struct pci_bus* bus, unsigned int devfn, int where, int size, u32 value) {
    int err = pci_generic_config_write(bus, devfn, where, size, value);

    readl(bridge_of(bus)->config);
    return err;
}

static struct pci_ops config_ops = {
    .map_bus = map_config,
    .read = pci_generic_config_read,
    .write = write_config,
};

/* Makes the whole of a BAR a window of the domain. */
static int open_window(struct pci_dev* endpoint, int bar, struct resource* window,
                       unsigned long flags) {
    window->name = "vgpu_test_bridge window";
    window->start = pci_resource_start(endpoint, bar);
    window->end = pci_resource_end(endpoint, bar);
    window->flags = IORESOURCE_MEM | flags;
    return request_resource(&endpoint->resource[bar], window);
}

static int open_windows(struct pci_dev* endpoint, struct test_bridge* bridge) {
    int err = open_window(endpoint, VGPU_HOST_VIEW_BAR_LOW, &bridge->low, 0);

    if (err) return err;
    err = open_window(endpoint, VGPU_HOST_VIEW_BAR_HIGH, &bridge->high,
                      IORESOURCE_MEM_64 | IORESOURCE_PREFETCH);
    if (err) release_resource(&bridge->low);
    return err;
}

static void close_windows(struct test_bridge* bridge) {
    release_resource(&bridge->high);
    release_resource(&bridge->low);
}

static int open_domain(struct pci_dev* endpoint, struct test_bridge* bridge) {
    struct pci_host_bridge* host = bridge->host;

    bridge->buses.name = "vgpu_test_bridge buses";
    bridge->buses.end = bridge->config_bytes / VGPU_ECAM_BUS_BYTES - 1;
    bridge->buses.flags = IORESOURCE_BUS;
    bridge->sysdata.domain = domain;
    bridge->sysdata.node = dev_to_node(&endpoint->dev);

    pci_add_resource(&host->windows, &bridge->buses);
    pci_add_resource(&host->windows, &bridge->low);
    pci_add_resource(&host->windows, &bridge->high);
    host->dev.parent = &endpoint->dev;
    host->sysdata = &bridge->sysdata;
    host->ops = &config_ops;
    return pci_host_probe(host);
}

static int test_bridge_probe(struct pci_dev* endpoint, const struct pci_device_id* id) {
    struct pci_host_bridge* host;
    struct test_bridge* bridge;
    int err = pcim_enable_device(endpoint);

    if (err) return err;
    pci_set_master(endpoint);

    host = pci_alloc_host_bridge(sizeof(*bridge));
    if (!host) return -ENOMEM;
    bridge = pci_host_bridge_priv(host);
    bridge->host = host;
    bridge->config_bytes = pci_resource_len(endpoint, VGPU_HOST_VIEW_BAR_CONFIG);
    bridge->config = pcim_iomap(endpoint, VGPU_HOST_VIEW_BAR_CONFIG, 0);
    if (!bridge->config) {
        err = -ENOMEM;
        goto free_host;
    }
    err = open_windows(endpoint, bridge);
    if (err) goto free_host;
    pci_set_drvdata(endpoint, bridge);
    err = open_domain(endpoint, bridge);
    if (err) goto close;
    return 0;

close:
    close_windows(bridge);
free_host:
    pci_free_host_bridge(host);
    return err;
}

static void test_bridge_remove(struct pci_dev* endpoint) {
    struct test_bridge* bridge = pci_get_drvdata(endpoint);
    struct pci_host_bridge* host = bridge->host;

    /* the windows are in the memory of the host bridge, which has to outlive the buses */
    get_device(&host->dev);
    pci_lock_rescan_remove();
    pci_stop_root_bus(host->bus);
    pci_remove_root_bus(host->bus);
    pci_unlock_rescan_remove();
    close_windows(bridge);
    put_device(&host->dev);
}

static const struct pci_device_id test_bridge_ids[] = {
    {PCI_DEVICE(VGPU_HOST_VIEW_VENDOR, VGPU_HOST_VIEW_DEVICE)}, {}};
MODULE_DEVICE_TABLE(pci, test_bridge_ids);

static struct pci_driver test_bridge_driver = {
    .name = "vgpu_test_bridge",
    .id_table = test_bridge_ids,
    .probe = test_bridge_probe,
    .remove = test_bridge_remove,
};
module_pci_driver(test_bridge_driver);

MODULE_DESCRIPTION("PCI domain behind softgpu's host view (tests only)");
MODULE_LICENSE("Dual MIT/GPL");
