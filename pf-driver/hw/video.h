/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Packets of the encoder rings (video.def), and limits of rings and IBs. An IB of an encoder ring
 * holds a list of commands {length in bytes, command, payload} instead of packets. Zeroes after the
 * last command are padding. Source: Linux amdgpu soc15d.h, amdgpu_vce.c, uvd_v7_0.c.
 */
#ifndef VGPU_HW_VIDEO_H
#define VGPU_HW_VIDEO_H

#include "pf-driver/hw/types.h"

enum video_packet {
#define VIDEO(name, op, dwords, action, doc) VIDEO_PACKET_##name = (op),
#include "pf-driver/hw/video.def"
#undef VIDEO
};

#define VIDEO_MAX_PACKET_DWORDS 5u
#define VIDEO_MAX_RING_DWORDS	0x100000u /* vgpu only */
#define VIDEO_MAX_IB_DWORDS	0x4000u	  /* vgpu only */
#define VIDEO_MIN_COMMAND_BYTES 8u	  /* length and command, without payload */

#endif
