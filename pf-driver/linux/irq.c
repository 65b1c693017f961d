// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The MSI-X vectors of the PF: vector 0 for the engine, vector 1 for mailboxes and for clients
 * (such as QEMU) that attach, detach or reset VFs. The handler runs in hard interrupt context and
 * only wakes the service thread, which reads the causes from the device.
 */
#include <linux/interrupt.h>

#include "pf-driver/linux/platform.h"

static irqreturn_t on_interrupt(int irq, void *context)
{
	vgpu_platform_wake(context, VGPU_WAKEUP_INTERRUPT);
	return IRQ_HANDLED;
}

static void free_vectors(struct vgpu_platform *platform, int count)
{
	while (count--)
		free_irq((unsigned int)pci_irq_vector(platform->pdev, (unsigned int)count),
			 platform);
	pci_free_irq_vectors(platform->pdev);
}

/*
 * Request all vectors of the PF: the device does not send the interrupts of a missing vector by
 * another one. All vectors have the same handler, because the core reads the causes from the
 * device. Return: 0 or a negative errno.
 */
int vgpu_linux_irq_init(struct vgpu_platform *platform)
{
	int error = pci_alloc_irq_vectors(platform->pdev, GPUIOV_VECTOR_COUNT, GPUIOV_VECTOR_COUNT,
					  PCI_IRQ_MSIX);

	if (error < 0) {
		dev_err(&platform->pdev->dev, "cannot get %d MSI-X vectors (%d)\n",
			GPUIOV_VECTOR_COUNT, error);
		return error;
	}
	for (int i = 0; i < GPUIOV_VECTOR_COUNT; i++) {
		error = request_irq((unsigned int)pci_irq_vector(platform->pdev, (unsigned int)i),
				    on_interrupt, IRQF_NO_THREAD, dev_name(&platform->pdev->dev),
				    platform);
		if (!error)
			continue;
		free_vectors(platform, i);
		return error;
	}
	return 0;
}

/* Free the vectors; no handler runs afterwards. */
void vgpu_linux_irq_fini(struct vgpu_platform *platform)
{
	free_vectors(platform, GPUIOV_VECTOR_COUNT);
}
