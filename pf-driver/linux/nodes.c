// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The nodes of a home: /dev/vgpu-pfN, and /dev/vgpu/vfM (of further GPUs: pfN-vfM) for each VF,
 * so that schedulers of devices can hand it out. chardev.c implements the open files.
 *
 * The reference count of the PF's struct device counts the home's users: each open file and each
 * VF's node holds a reference; the last one frees the home's memory.
 */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/home.h"

static dev_t first_number;
static DEFINE_IDA(indices);

static char *node_name(VGPU_DEVNODE_DEVICE *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

static struct class vgpu_class = {
	.name = "vgpu",
	.devnode = node_name,
};

static void release_home(struct device *dev)
{
	struct vgpu_home_vf *node = container_of(dev, struct vgpu_home_vf, dev);
	struct vgpu_home *home = node->home;

	ida_free(&indices, (unsigned int)home->index);
	vfree(home->ring.data);
	vfree(home->pf);
	kfree(home);
}

static void release_vf(struct device *dev)
{
	struct vgpu_home_vf *node = container_of(dev, struct vgpu_home_vf, dev);

	put_device(node->home->device);
}

static void init_core(struct vgpu_home *home)
{
	struct vgpu_pf_params params = {.boot_id = get_random_u64(),
					.home = VGPU_PF_HOME_KERNEL,
					.time_scale = vgpu_pci_time_scale(),
					.max_gap_ms = vgpu_pci_max_gap_ms(),
					.event_ring = home->ring.data,
					.event_ring_bytes = home->ring.bytes};

	snprintf(params.name, sizeof(params.name), "gpu%d", home->index);
	home->os.ops = &vgpu_linux_os_ops;
	vgpu_pf_init(home->pf, &home->os, &params);
}

static void init_home(struct vgpu_home *home, struct pci_dev *pdev)
{
	home->pdev = pdev;
	rt_mutex_init(&home->lock);
	mutex_init(&home->admin);
	spin_lock_init(&home->functions.lock);
	INIT_LIST_HEAD(&home->clients.requests);
	init_waitqueue_head(&home->ring.wait);
	init_waitqueue_head(&home->state_wait);
	home->ring.event_seq = 1;
	for (u32 i = 0; i < VGPU_NODES_PER_GPU; i++) {
		home->vfs[i].home = home;
		home->vfs[i].number = i;
	}
	vgpu_policy_init(home);
	home->device = &home->vfs[0].dev;
	device_initialize(home->device);
	home->device->class = &vgpu_class;
	home->device->parent = &pdev->dev;
	home->device->release = release_home;
}

/* A new home with one reference, and its core without a device; or an ERR_PTR. */
struct vgpu_home *vgpu_nodes_make_home(struct pci_dev *pdev)
{
	struct vgpu_home *home = kzalloc(sizeof(*home), GFP_KERNEL);
	int index, error;

	if (!home)
		return ERR_PTR(-ENOMEM);
	index = ida_alloc_max(&indices, VGPU_MAX_GPUS - 1, GFP_KERNEL);
	if (index < 0) {
		kfree(home);
		return ERR_PTR(index);
	}
	home->index = index;
	init_home(home, pdev);
	home->ring.bytes =
		VGPU_PF_RING_EVENTS_OFFSET + VGPU_PF_RING_ENTRIES * sizeof(struct vgpu_pf_event);
	home->ring.data = vmalloc_user(home->ring.bytes);
	home->pf = vzalloc(vgpu_pf_bytes());
	error = home->ring.data && home->pf ? 0 : -ENOMEM;
	if (!error)
		init_core(home);
	if (!error)
		error = dev_set_name(home->device, "vgpu-pf%d", index);
	if (!error)
		return home;
	put_device(home->device);
	return ERR_PTR(error);
}

static int add_node(struct vgpu_home_vf *node)
{
	u32 minor = (u32)node->home->index * VGPU_NODES_PER_GPU + node->number;

	node->dev.devt = first_number + minor;
	cdev_init(&node->cdev, &vgpu_chardev_operations);
	node->cdev.owner = THIS_MODULE;
	return cdev_device_add(&node->cdev, &node->dev);
}

static int add_vf(struct vgpu_home *home, struct vgpu_home_vf *vf)
{
	int error;

	device_initialize(&vf->dev);
	vf->dev.class = &vgpu_class;
	vf->dev.parent = home->device;
	vf->dev.release = release_vf;
	get_device(home->device);
	/* '!' becomes '/' in /dev */
	if (home->index == 0)
		error = dev_set_name(&vf->dev, "vgpu!vf%u", vf->number);
	else
		error = dev_set_name(&vf->dev, "vgpu!pf%d-vf%u", home->index, vf->number);
	if (!error)
		error = add_node(vf);
	if (error)
		put_device(&vf->dev);
	return error;
}

static void remove_vfs(struct vgpu_home *home, u32 last)
{
	for (u32 i = 1; i <= last; i++) {
		cdev_device_del(&home->vfs[i].cdev, &home->vfs[i].dev);
		put_device(&home->vfs[i].dev);
	}
}

/* Create the nodes of a home that is ready for use. */
int vgpu_nodes_add(struct vgpu_home *home)
{
	int error = add_node(&home->vfs[0]);

	if (error)
		return error;
	for (u32 i = 1; i <= home->total_vfs; i++) {
		error = add_vf(home, &home->vfs[i]);
		if (!error)
			continue;
		remove_vfs(home, i - 1);
		cdev_device_del(&home->vfs[0].cdev, home->device);
		return error;
	}
	return 0;
}

/* Remove the nodes; open files stay. */
void vgpu_nodes_remove(struct vgpu_home *home)
{
	remove_vfs(home, home->total_vfs);
	cdev_device_del(&home->vfs[0].cdev, home->device);
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
