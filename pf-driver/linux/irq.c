// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MSI-X vectors of the PF: world switch and mailbox. The handler runs in hard interrupt context and
 * only wakes the executor's thread, which reads the device.
 */
#include <linux/interrupt.h>

#include "pf-driver/linux/home.h"

static irqreturn_t on_interrupt(int irq, void *context)
{
	vgpu_home_wake(context, VGPU_WAKEUP_INTERRUPT);
	return IRQ_HANDLED;
}

static void free_vectors(struct vgpu_home *home, int count)
{
	while (count--)
		free_irq((unsigned int)pci_irq_vector(home->pdev, (unsigned int)count), home);
	pci_free_irq_vectors(home->pdev);
}

/* Request the PF's vectors. One is enough: the core does not need to know which one fired. */
int vgpu_linux_irq_init(struct vgpu_home *home)
{
	int error;

	home->bars.vectors =
		pci_alloc_irq_vectors(home->pdev, 1, GPUIOV_VECTOR_COUNT, PCI_IRQ_MSIX);
	if (home->bars.vectors < 0)
		return home->bars.vectors;
	for (int i = 0; i < home->bars.vectors; i++) {
		error = request_irq((unsigned int)pci_irq_vector(home->pdev, (unsigned int)i),
				    on_interrupt, IRQF_NO_THREAD, dev_name(&home->pdev->dev), home);
		if (!error)
			continue;
		free_vectors(home, i);
		return error;
	}
	return 0;
}

/* Free the vectors; no handler runs afterwards. */
void vgpu_linux_irq_fini(struct vgpu_home *home)
{
	free_vectors(home, home->bars.vectors);
}
