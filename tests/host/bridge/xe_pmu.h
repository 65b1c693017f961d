/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The perf PMU of vgpu_test_xe.ko, for its one GPU. */
#ifndef XE_PMU_H
#define XE_PMU_H

#include <linux/pci.h>

/* the quantum of a function of `gpu` in ms; 0: unlimited. Called with interrupts off. */
typedef u32 (*xe_quantum)(const void* gpu, unsigned int function);

/* Begins to count for functions 0 to `total` of `gpu`. Without the parameter "pmu": does nothing.
 */
int xe_pmu_add(struct pci_dev* pf, xe_quantum quantum, const void* gpu, unsigned int total);
/* Ends the counting; open counters keep their values. */
void xe_pmu_remove(void);
/* Removes the PMU from the kernel, when the module is unloaded. */
void xe_pmu_exit(void);

#endif
