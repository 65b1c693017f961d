/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PCI identity, BARs and capability layout of PF and VFs.
 * Source: Linux amdgpu_drv.c (device ids), PCIe Base Specification (capabilities).
 */
#ifndef VGPU_HW_PCI_H
#define VGPU_HW_PCI_H

#include "pf-driver/hw/types.h"

#define VGPU_PCI_VENDOR_ATI   0x1002u
#define VGPU_PCI_DEVICE_PF    0x6860u /* Radeon Instinct MI25 */
#define VGPU_PCI_DEVICE_VF    0x686cu /* Radeon Instinct MI25 MxGPU */
#define VGPU_PCI_REVISION     0x01u
#define VGPU_PCI_CLASS	      0x038000u
#define VGPU_PCI_SUBVENDOR_PF 0x5647u /* ours: "GV"; vgpu_pf.ko matches on it */
#define VGPU_PCI_SUBDEVICE_PF 0x5047u
#define VGPU_PCI_SUBVENDOR_VF 0x1002u
#define VGPU_PCI_SUBDEVICE_VF 0x0c35u

enum vgpu_pci_bar {
	VGPU_BAR_VRAM = 0,	/* 64-bit prefetchable */
	VGPU_BAR_DOORBELL = 2,	/* 64-bit prefetchable */
	VGPU_BAR_REGISTERS = 5, /* 32-bit */
};

/* first VF's routing id - the PF's, and the step between VFs (ARI) */
#define VGPU_SRIOV_FIRST_VF_OFFSET 1u
#define VGPU_SRIOV_VF_STRIDE	   1u

/* config space: where our capabilities stand */
enum vgpu_pci_cap {
	VGPU_CAP_PCIE = 0x40,
	VGPU_CAP_MSI = 0x80,
	VGPU_CAP_MSIX = 0xa0,	 /* PF */
	VGPU_ECAP_SRIOV = 0x100, /* PF */
	VGPU_ECAP_ARI = 0x150,
	VGPU_ECAP_VSEC = 0x200, /* PF: GPU-IOV */
};
#define VGPU_PCI_CONFIG_BYTES 4096u
/* extended capability header, PCIe Base Specification */
#define VGPU_PCI_ECAP_FIRST	   0x100u
#define VGPU_PCI_ECAP_VENDOR	   0x000bu
#define VGPU_PCI_ECAP_ID(header)   ((header)&0xffffu)
#define VGPU_PCI_ECAP_NEXT(header) (((header) >> 20) & 0xffcu)
#define VGPU_PCI_VSEC_HEADER	   0x04u /* id [15:0] of a vendor-specific capability */
#define VGPU_PCI_VSEC_ID(header)   ((header)&0xffffu)
/* MSI-X table and PBA of the PF, in BAR5 behind the registers the driver knows */
#define VGPU_MSIX_TABLE_OFFSET 0x7e000u
#define VGPU_MSIX_PBA_OFFSET   0x7f000u

#endif
