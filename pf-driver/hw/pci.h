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
#define VGPU_PCI_SUBVENDOR_PF 0x5647u /* vgpu only: ASCII "VG"; selects vgpu_pf.ko */
#define VGPU_PCI_SUBDEVICE_PF 0x5047u
#define VGPU_PCI_SUBVENDOR_VF 0x1002u
#define VGPU_PCI_SUBDEVICE_VF 0x0c35u

enum vgpu_pci_bar {
	VGPU_BAR_VRAM = 0,	/* 64-bit prefetchable */
	VGPU_BAR_DOORBELL = 2,	/* 64-bit prefetchable */
	VGPU_BAR_REGISTERS = 5, /* 32-bit */
};

/* routing id of VF n = routing id of the PF + FIRST_VF_OFFSET + (n - 1) * STRIDE (ARI) */
#define VGPU_SRIOV_FIRST_VF_OFFSET 1u
#define VGPU_SRIOV_VF_STRIDE	   1u

/* offsets of the capabilities in the configuration space of PF and VFs */
enum vgpu_pci_cap {
	VGPU_CAP_PCIE = 0x40,
	VGPU_CAP_MSI = 0x80,	 /* VF */
	VGPU_CAP_MSIX = 0xa0,	 /* PF */
	VGPU_ECAP_SRIOV = 0x100, /* PF */
	VGPU_ECAP_ARI = 0x150,
	VGPU_ECAP_VSEC = 0x200, /* PF: GPU-IOV */
};
#define VGPU_PCI_CONFIG_BYTES 4096u
/* extended capability list: first offset, fields of a header (PCIe Base Specification) */
#define VGPU_PCI_ECAP_FIRST	   0x100u
#define VGPU_PCI_ECAP_VENDOR	   0x000bu
#define VGPU_PCI_ECAP_ID(header)   ((header)&0xffffu)
#define VGPU_PCI_ECAP_NEXT(header) (((header) >> 20) & 0xffcu)
#define VGPU_PCI_VSEC_HEADER	   0x04u /* id [15:0] of a vendor-specific capability */
#define VGPU_PCI_VSEC_ID(header)   ((header)&0xffffu)
/* MSI-X table and pending bits (PBA) of the PF: byte offsets in BAR5, beyond all used registers */
#define VGPU_MSIX_TABLE_OFFSET 0x7e000u
#define VGPU_MSIX_PBA_OFFSET   0x7f000u

/*
 * The host view is an endpoint. Its BARs give access to a PCI domain with a root port, the PF and
 * its VFs, so that the kernel of a VM sees the whole card. The default ids are vgpu's. With the VMD
 * ids, Linux' vmd.ko drives the endpoint (registers and BARs as in drivers/pci/controller/vmd.c).
 */
#define VGPU_HOST_VIEW_VENDOR	   0x5056u
#define VGPU_HOST_VIEW_DEVICE	   0x0b1du
#define VGPU_HOST_VIEW_VENDOR_VMD  0x8086u
#define VGPU_HOST_VIEW_DEVICE_VMD  0x28c0u
#define VGPU_HOST_VIEW_CLASS	   0x010400u
#define VGPU_HOST_VIEW_CONFIG	   0x44u   /* register VMCONFIG of VMD, in configuration space */
#define VGPU_HOST_VIEW_CONFIG_MASK 0x0002u /* its writable bits; bit 1: MSIs pass unchanged */
#define VGPU_ROOT_PORT_DEVICE	   0x0b1eu
#define VGPU_ROOT_PORT_CLASS	   0x060400u

enum vgpu_host_view_bar {
	VGPU_HOST_VIEW_BAR_CONFIG = 0, /* 64-bit prefetchable: ECAM */
	VGPU_HOST_VIEW_BAR_LOW = 2,    /* 32-bit: register BARs */
	VGPU_HOST_VIEW_BAR_HIGH = 4,   /* 64-bit prefetchable: VRAM and doorbells */
};

/* ECAM (PCIe Base Specification): bytes per bus, and shifts of bus and function in an offset */
#define VGPU_ECAM_BUS_BYTES	 0x100000u
#define VGPU_ECAM_BUS_SHIFT	 20
#define VGPU_ECAM_FUNCTION_SHIFT 12
/* one bus with the root port; one with PF and all VFs, which ARI puts on one bus */
#define VGPU_HOST_VIEW_BUSES 2u

/*
 * BAR0 of the root port (vgpu only): an IOMMU for the functions behind the port, so that a VM can
 * pass VFs to nested VMs. The driver (tests/host/bridge) writes the arguments, then the command,
 * and reads the status. ADDRESS, SIZE, and TARGET of MAP are multiples of 4 KiB.
 */
#define VGPU_ROOT_PORT_BAR_BYTES 0x1000u
enum vgpu_iommu_reg {
	VGPU_IOMMU_SUBJECT = 0x00, /* 32 bits; domain; for ROUTE: routing id of a function */
	VGPU_IOMMU_ADDRESS = 0x08, /* 64 bits; first address that functions of the domain use */
	VGPU_IOMMU_TARGET = 0x10,  /* 64 bits; address to which ADDRESS maps; for ROUTE: domain */
	VGPU_IOMMU_SIZE = 0x18,	   /* 64 bits; bytes of the range at ADDRESS */
	VGPU_IOMMU_COMMAND = 0x20, /* 32 bits; enum vgpu_iommu_command, executed at once */
	VGPU_IOMMU_STATUS = 0x24,  /* 32 bits; result of the last command: 0 done, 1 refused */
	VGPU_IOMMU_BYTES = 0x28,
};
enum vgpu_iommu_command {
	VGPU_IOMMU_MAP = 1,   /* maps the range to TARGET in domain SUBJECT */
	VGPU_IOMMU_UNMAP = 2, /* unmaps the range in domain SUBJECT, also parts of mappings */
	VGPU_IOMMU_FREE = 3,  /* ends domain SUBJECT; blocks the functions that are routed to it */
	VGPU_IOMMU_ROUTE = 4, /* moves function SUBJECT to domain TARGET */
};
#define VGPU_IOMMU_IDENTITY 0u /* domain of functions that are not routed: untranslated */
#define VGPU_IOMMU_BLOCKED  1u /* domain of functions that reach no memory */

/* offsets of the capabilities in the configuration space of endpoint and root port */
enum vgpu_host_view_cap {
	VGPU_CAP_ENDPOINT_PCIE = 0x80,
	VGPU_CAP_ROOT_PORT_PCIE = 0x40,
	VGPU_CAP_ROOT_PORT_PM = 0x80,
};

#endif
