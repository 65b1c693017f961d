/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Hides the differences between the kernels that this module is compiled for, 6.1 to 7.x. Each
 * difference is handled here once, if possible under the name in the newest kernel. No other file
 * of linux/ checks the kernel's version. The version does not reveal a change that stable kernels
 * get by a backport, so pf-driver/Kbuild searches the kernel's headers for such a change.
 */
#ifndef VGPU_LINUX_COMPAT_H
#define VGPU_LINUX_COMPAT_H

#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/version.h>

/* since 6.2, devnode() of struct class gets a const device */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define VGPU_DEVNODE_DEVICE const struct device
#else
#define VGPU_DEVNODE_DEVICE struct device
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_clear(struct vm_area_struct *area, unsigned long flags)
{
	area->vm_flags &= ~flags;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/*
 * Let only the driver `name` bind to the PCI function; NULL: any driver. Return: 0 or a negative
 * errno.
 */
static inline int vgpu_set_driver_override(struct pci_dev *function, const char *name)
{
#ifdef VGPU_HAS_DEVICE_DRIVER_OVERRIDE
	return device_set_driver_override(&function->dev, name ? name : "");
#else
	/* an empty name ends the override */
	const char *text = name ? name : "";

	return driver_set_override(&function->dev, &function->driver_override, text, strlen(text));
#endif
}

#endif
