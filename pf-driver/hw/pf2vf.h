/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Messages between PF and VF in the VF's VRAM: PF2VF (v2) at 64 KiB, VF2PF (v3) at 65 KiB, each
 * 1024 bytes. The checksum is the 32-bit sum of all bytes except the four of the checksum itself.
 * Source: AMD MxGPU-Virtualization amdgv_sriovmsg.h; Linux amdgpu amdgv_sriovmsg.h.
 */
#ifndef VGPU_HW_PF2VF_H
#define VGPU_HW_PF2VF_H

#include "pf-driver/hw/types.h"

#define VF_VRAM_VBIOS_OFFSET   0u
#define VF_VRAM_VBIOS_BYTES    0x10000u
#define VF_VRAM_PF2VF_OFFSET   0x10000u
#define VF_VRAM_VF2PF_OFFSET   0x10400u
#define VF_VRAM_RESERVED_BYTES 0x40000u /* at offset 0; guests must not allocate there */
#define PF2VF_BYTES	       1024u
#define PF2VF_VERSION	       2u
#define VF2PF_VERSION	       3u

/*
 * PF2VF, which only the PF should write. `size` is in bytes. The PF core leaves the fields of
 * encoders, firmware, bad pages (bp_*) and bandwidth 0. The guest checks the checksum before each
 * of its VF2PF updates, and resets the VF if the checksum is wrong several times (Linux
 * amdgpu_virt.c; Linux 7: twice). So the checksum must be right at every instant.
 */
struct pf2vf_message {
	uint32_t size;
	uint32_t version;
	uint32_t reserved0[2];
	uint32_t checksum;
	uint32_t feature_flags;
	uint32_t hevc_enc_max_mb_per_second;
	uint32_t hevc_enc_max_mb_per_frame;
	uint32_t avc_enc_max_mb_per_second;
	uint32_t avc_enc_max_mb_per_frame;
	uint32_t mecfw_offset_lo, mecfw_offset_hi, mecfw_size;
	uint32_t uvdfw_offset_lo, uvdfw_offset_hi, uvdfw_size;
	uint32_t vcefw_offset_lo, vcefw_offset_hi, vcefw_size;
	uint32_t bp_block_offset_lo, bp_block_offset_hi, bp_block_size;
	uint32_t vf2pf_update_interval_ms;
	uint32_t uuid_lo, uuid_hi;
	uint32_t fcn_idx;
	uint32_t reg_access_flags;
	uint32_t mm_bw_management[16];
	uint32_t uuid_info[4];
	uint32_t pcie_atomic_ops_support_flags;
	uint32_t gpu_capacity;
	uint32_t reserved1[206];
	/* last dword of the 1024 bytes */
	uint32_t reserved2;
};
HW_ASSERT_SIZE(struct pf2vf_message, 1024);
HW_ASSERT_OFFSET(struct pf2vf_message, checksum, 16);
HW_ASSERT_OFFSET(struct pf2vf_message, vf2pf_update_interval_ms, 88);
HW_ASSERT_OFFSET(struct pf2vf_message, fcn_idx, 100);
HW_ASSERT_OFFSET(struct pf2vf_message, reg_access_flags, 104);
HW_ASSERT_OFFSET(struct pf2vf_message, pcie_atomic_ops_support_flags, 188);
HW_ASSERT_OFFSET(struct pf2vf_message, gpu_capacity, 192);

#define PF2VF_UPDATE_INTERVAL_MS 2000u	/* the guest's interval between updates of VF2PF */
#define PF2VF_PCIE_ATOMICS_32_64 0x180u /* DevCap2: 32-bit and 64-bit AtomicOp completer */
#define PF2VF_GPU_CAPACITY_FULL	 65535u /* gpu_capacity of a VF that may use all of the GPU */

/* byte offsets in VF2PF, which is a packed struct in the guest's driver */
enum vf2pf_offset {
	VF2PF_SIZE = 0,
	VF2PF_VERSION_OFFSET = 4,
	VF2PF_CHECKSUM = 16,
	VF2PF_DRIVER_VERSION = 20, /* 64 bytes of text */
	VF2PF_FB_USAGE_MB = 92,
	VF2PF_FB_SIZE_MB = 148,
};
#define VF2PF_DRIVER_VERSION_BYTES 64u

#endif
