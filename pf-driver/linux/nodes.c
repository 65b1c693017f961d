// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The nodes of a platform: /dev/vgpu-pfN, and for each VF /dev/vgpu/vfM (if N is 0) or
 * /dev/vgpu/pfN-vfM, so that a device manager can give a user single VFs. chardev.c implements the
 * operations on open nodes.
 *
 * The reference count of the struct device of the PF's node counts the platform's users. The
 * driver, each open file, each VF's node and each directory in sysfs holds a reference. When the
 * last reference is dropped, the platform's memory is freed.
 */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/platform.h"

static dev_t first_number;
static DEFINE_IDA(indices); /* N of /dev/vgpu-pfN */

static char *set_node_mode(VGPU_DEVNODE_DEVICE *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

static struct class vgpu_class = {
	.name = "vgpu",
	.devnode = set_node_mode,
};

static void release_platform(struct device *dev)
{
	struct vgpu_platform_vf *node = container_of(dev, struct vgpu_platform_vf, dev);
	struct vgpu_platform *platform = node->platform;

	ida_free(&indices, (unsigned int)platform->index);
	vfree(platform->ring.data);
	vfree(platform->pf);
	kfree(platform);
}

static void release_vf(struct device *dev)
{
	struct vgpu_platform_vf *node = container_of(dev, struct vgpu_platform_vf, dev);

	put_device(node->platform->device);
}

static void init_core(struct vgpu_platform *platform)
{
	struct vgpu_pf_params params = {.boot_id = get_random_u64(),
					.platform = VGPU_PF_PLATFORM_KERNEL,
					.time_scale = vgpu_pci_time_scale(),
					.max_gap_ms = vgpu_pci_max_gap_ms(),
					.event_ring = platform->ring.data,
					.event_ring_bytes = platform->ring.bytes};

	snprintf(params.name, sizeof(params.name), "gpu%d", platform->index);
	platform->os.ops = &vgpu_linux_os_ops;
	vgpu_pf_init(platform->pf, &platform->os, &params);
}

static void init_platform(struct vgpu_platform *platform, struct pci_dev *pdev)
{
	platform->pdev = pdev;
	rt_mutex_init(&platform->lock);
	mutex_init(&platform->admin);
	spin_lock_init(&platform->functions.lock);
	INIT_LIST_HEAD(&platform->clients.requests);
	init_waitqueue_head(&platform->ring.wait);
	init_waitqueue_head(&platform->state_wait);
	platform->ring.event_seq = 1;
	for (u32 i = 0; i < VGPU_NODES_PER_GPU; i++) {
		platform->vfs[i].platform = platform;
		platform->vfs[i].number = i;
	}
	vgpu_policy_init(platform);
	platform->device = &platform->vfs[0].dev;
	device_initialize(platform->device);
	platform->device->class = &vgpu_class;
	platform->device->parent = &pdev->dev;
	platform->device->release = release_platform;
}

/*
 * Make a platform, whose core has no device yet. Return: the platform with one reference, or an
 * ERR_PTR.
 */
struct vgpu_platform *vgpu_nodes_make_platform(struct pci_dev *pdev)
{
	struct vgpu_platform *platform = kzalloc(sizeof(*platform), GFP_KERNEL);
	int index, error;

	if (!platform)
		return ERR_PTR(-ENOMEM);
	index = ida_alloc_max(&indices, VGPU_MAX_GPUS - 1, GFP_KERNEL);
	if (index < 0) {
		kfree(platform);
		return ERR_PTR(index);
	}
	platform->index = index;
	init_platform(platform, pdev);
	platform->ring.bytes =
		VGPU_PF_RING_EVENTS_OFFSET + VGPU_PF_RING_ENTRIES * sizeof(struct vgpu_pf_event);
	platform->ring.data = vmalloc_user(platform->ring.bytes);
	platform->pf = vzalloc(vgpu_pf_bytes());
	error = platform->ring.data && platform->pf ? 0 : -ENOMEM;
	if (!error)
		init_core(platform);
	if (!error)
		error = dev_set_name(platform->device, "vgpu-pf%d", index);
	if (!error)
		return platform;
	put_device(platform->device);
	return ERR_PTR(error);
}

static int add_node(struct vgpu_platform_vf *node)
{
	u32 minor = (u32)node->platform->index * VGPU_NODES_PER_GPU + node->number;

	node->dev.devt = first_number + minor;
	cdev_init(&node->cdev, &vgpu_chardev_operations);
	node->cdev.owner = THIS_MODULE;
	return cdev_device_add(&node->cdev, &node->dev);
}

static int add_vf(struct vgpu_platform *platform, struct vgpu_platform_vf *vf)
{
	int error;

	device_initialize(&vf->dev);
	vf->dev.class = &vgpu_class;
	vf->dev.parent = platform->device;
	vf->dev.release = release_vf;
	get_device(platform->device);
	/* '!' becomes '/' in /dev */
	if (platform->index == 0)
		error = dev_set_name(&vf->dev, "vgpu!vf%u", vf->number);
	else
		error = dev_set_name(&vf->dev, "vgpu!pf%d-vf%u", platform->index, vf->number);
	if (!error)
		error = add_node(vf);
	if (error)
		put_device(&vf->dev);
	return error;
}

static void remove_vfs(struct vgpu_platform *platform, u32 last)
{
	for (u32 i = 1; i <= last; i++) {
		cdev_device_del(&platform->vfs[i].cdev, &platform->vfs[i].dev);
		put_device(&platform->vfs[i].dev);
	}
}

/* Create the nodes of the PF and of its VFs. Return: 0 or a negative errno. */
int vgpu_nodes_add(struct vgpu_platform *platform)
{
	int error = add_node(&platform->vfs[0]);

	if (error)
		return error;
	for (u32 i = 1; i <= platform->total_vfs; i++) {
		error = add_vf(platform, &platform->vfs[i]);
		if (!error)
			continue;
		remove_vfs(platform, i - 1);
		cdev_device_del(&platform->vfs[0].cdev, platform->device);
		return error;
	}
	return 0;
}

/* Remove the nodes. Open files stay open, and keep the platform's memory. */
void vgpu_nodes_remove(struct vgpu_platform *platform)
{
	remove_vfs(platform, platform->total_vfs);
	cdev_device_del(&platform->vfs[0].cdev, platform->device);
}

int vgpu_nodes_init(void)
{
	int error = alloc_chrdev_region(&first_number, 0, VGPU_MAX_GPUS * VGPU_NODES_PER_GPU,
					VGPU_DRIVER_NAME);

	if (error)
		return error;
	error = class_register(&vgpu_class);
	if (error)
		unregister_chrdev_region(first_number, VGPU_MAX_GPUS * VGPU_NODES_PER_GPU);
	return error;
}

void vgpu_nodes_exit(void)
{
	class_unregister(&vgpu_class);
	unregister_chrdev_region(first_number, VGPU_MAX_GPUS * VGPU_NODES_PER_GPU);
	ida_destroy(&indices);
}
