// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Test-only: driver of the IOMMU in the host view's root port (VGPU_IOMMU_* of hw/pci.h), which
 * gives every function of the card an IOMMU group of its own, so that stock vfio-pci can hand VFs
 * to VMs inside the test VM. Functions whose driver uses the kernel's DMA API stay in the identity
 * domain.
 *
 * Load it after the bridge and before drivers of the card; it cannot be unloaded. For Linux 6.12:
 * iommu_ops changes with most releases.
 */
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "pf-driver/hw/pci.h"

#define MSI_WINDOW 0xfee00000
#define MSI_WINDOW_BYTES 0x100000

/**
 * struct test_domain - an address space of functions
 * @domain: the kernel's object
 * @id: its number in the device
 * @pages: page number behind each page number of an address
 */
struct test_domain {
    struct iommu_domain domain;
    u32 id;
    struct xarray pages;
};

static struct {
    struct pci_dev* port;
    void __iomem* registers;
    spinlock_t lock; /* a command is several writes */
    struct iommu_device device;
    atomic_t last_id;
} iommu = {
    .lock = __SPIN_LOCK_UNLOCKED(iommu.lock),
    .last_id = ATOMIC_INIT(VGPU_IOMMU_BLOCKED),
};

static struct test_domain* to_test_domain(struct iommu_domain* domain) {
    return container_of(domain, struct test_domain, domain);
}

static int command(enum vgpu_iommu_command what, u32 subject, u64 address, u64 target, u64 size) {
    unsigned long flags;
    u32 status;

    spin_lock_irqsave(&iommu.lock, flags);
    writel(subject, iommu.registers + VGPU_IOMMU_SUBJECT);
    writeq(address, iommu.registers + VGPU_IOMMU_ADDRESS);
    writeq(target, iommu.registers + VGPU_IOMMU_TARGET);
    writeq(size, iommu.registers + VGPU_IOMMU_SIZE);
    writel(what, iommu.registers + VGPU_IOMMU_COMMAND);
    status = readl(iommu.registers + VGPU_IOMMU_STATUS);
    spin_unlock_irqrestore(&iommu.lock, flags);
    return status ? -ENOSPC : 0;
}

/* functions are counted from the first one behind the port */
static int route(struct device* dev, u32 domain) {
    struct pci_dev* function = to_pci_dev(dev);
    u32 first = PCI_DEVID(iommu.port->subordinate->number, 0);

    return command(VGPU_IOMMU_ROUTE, pci_dev_id(function) - first, 0, domain, 0);
}

static int map_pages(struct iommu_domain* domain, unsigned long address, phys_addr_t target,
                     size_t page_size, size_t count, int prot, gfp_t gfp, size_t* mapped) {
    struct test_domain* test = to_test_domain(domain);
    size_t size = page_size * count, at;
    void* old;

    for (at = 0; at < size; at += PAGE_SIZE) {
        old = xa_store(&test->pages, (address + at) >> PAGE_SHIFT,
                       xa_mk_value((target + at) >> PAGE_SHIFT), gfp);
        if (xa_is_err(old)) return xa_err(old);
    }
    if (command(VGPU_IOMMU_MAP, test->id, address, target, size)) return -ENOSPC;
    *mapped = size;
    return 0;
}

static size_t unmap_pages(struct iommu_domain* domain, unsigned long address, size_t page_size,
                          size_t count, struct iommu_iotlb_gather* gather) {
    struct test_domain* test = to_test_domain(domain);
    size_t size = page_size * count, at;

    for (at = 0; at < size; at += PAGE_SIZE) xa_erase(&test->pages, (address + at) >> PAGE_SHIFT);
    command(VGPU_IOMMU_UNMAP, test->id, address, 0, size);
    return size;
}

static phys_addr_t iova_to_phys(struct iommu_domain* domain, dma_addr_t address) {
    void* page = xa_load(&to_test_domain(domain)->pages, address >> PAGE_SHIFT);

    return page ? (xa_to_value(page) << PAGE_SHIFT) | offset_in_page(address) : 0;
}

static int attach_paging(struct iommu_domain* domain, struct device* dev) {
    return route(dev, to_test_domain(domain)->id);
}

static int attach_identity(struct iommu_domain* domain, struct device* dev) {
    return route(dev, VGPU_IOMMU_IDENTITY);
}

static int attach_blocked(struct iommu_domain* domain, struct device* dev) {
    return route(dev, VGPU_IOMMU_BLOCKED);
}

static void free_domain(struct iommu_domain* domain) {
    struct test_domain* test = to_test_domain(domain);

    command(VGPU_IOMMU_FREE, test->id, 0, 0, 0);
    xa_destroy(&test->pages);
    kfree(test);
}

static const struct iommu_domain_ops paging_ops = {
    .attach_dev = attach_paging,
    .map_pages = map_pages,
    .unmap_pages = unmap_pages,
    .iova_to_phys = iova_to_phys,
    .free = free_domain,
};

static struct iommu_domain identity_domain = {
    .type = IOMMU_DOMAIN_IDENTITY,
    .ops = &(const struct iommu_domain_ops){.attach_dev = attach_identity},
};

static struct iommu_domain blocked_domain = {
    .type = IOMMU_DOMAIN_BLOCKED,
    .ops = &(const struct iommu_domain_ops){.attach_dev = attach_blocked},
};

static struct iommu_domain* alloc_paging(struct device* dev) {
    struct test_domain* test = kzalloc(sizeof(*test), GFP_KERNEL);

    if (!test) return NULL;
    test->id = atomic_inc_return(&iommu.last_id);
    xa_init_flags(&test->pages, XA_FLAGS_LOCK_IRQ);
    test->domain.pgsize_bitmap = SZ_4K;
    test->domain.geometry.aperture_end = DMA_BIT_MASK(47);
    test->domain.geometry.force_aperture = true;
    return &test->domain;
}

static struct iommu_device* probe_device(struct device* dev) {
    if (!dev_is_pci(dev) || pci_domain_nr(to_pci_dev(dev)->bus) != pci_domain_nr(iommu.port->bus) ||
        to_pci_dev(dev) == iommu.port)
        return ERR_PTR(-ENODEV);
    return &iommu.device;
}

static int def_domain_type(struct device* dev) {
    return IOMMU_DOMAIN_IDENTITY;
}

static bool is_capable(struct device* dev, enum iommu_cap capability) {
    return capability == IOMMU_CAP_CACHE_COHERENCY;
}

static void get_resv_regions(struct device* dev, struct list_head* regions) {
    struct iommu_resv_region* messages =
        iommu_alloc_resv_region(MSI_WINDOW, MSI_WINDOW_BYTES, 0, IOMMU_RESV_MSI, GFP_KERNEL);

    if (messages) list_add_tail(&messages->list, regions);
}

static const struct iommu_ops test_ops = {
    .capable = is_capable,
    .domain_alloc_paging = alloc_paging,
    .probe_device = probe_device,
    .device_group = generic_device_group,
    .def_domain_type = def_domain_type,
    .get_resv_regions = get_resv_regions,
    .default_domain_ops = &paging_ops,
    .pgsize_bitmap = SZ_4K,
    .owner = THIS_MODULE,
    .identity_domain = &identity_domain,
    .blocked_domain = &blocked_domain,
};

static int __init test_iommu_init(void) {
    int err = -ENOMEM;

    iommu.port = pci_get_device(VGPU_HOST_VIEW_VENDOR, VGPU_ROOT_PORT_DEVICE, NULL);
    if (!iommu.port) return -ENODEV;
    iommu.registers = ioremap(pci_resource_start(iommu.port, 0), VGPU_ROOT_PORT_BAR_BYTES);
    if (!iommu.registers) goto put_port;
    err = iommu_device_sysfs_add(&iommu.device, NULL, NULL, "vgpu_test_iommu");
    if (err) goto unmap;
    err = iommu_device_register(&iommu.device, &test_ops, NULL);
    if (!err) return 0;
    iommu_device_sysfs_remove(&iommu.device);
unmap:
    iounmap(iommu.registers);
put_port:
    pci_dev_put(iommu.port);
    return err;
}
module_init(test_iommu_init);

MODULE_DESCRIPTION("IOMMU of softgpu's host view (tests only)");
MODULE_LICENSE("Dual MIT/GPL");
