/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * GPU-IOV: the vendor-specific extended capability in the PF's config space with which a PF driver
 * partitions the GPU and switches worlds. Offsets are bytes from the capability header.
 * Source: the MI300 and MI200 headers of AMD MxGPU-Virtualization (GIM). The values are those of
 * stock hardware. Rows marked "vgpu only" do not exist in silicon.
 */
#ifndef VGPU_HW_GPUIOV_H
#define VGPU_HW_GPUIOV_H

#include "pf-driver/hw/types.h"

#define GPUIOV_VSEC_ID	     0x02u
#define GPUIOV_VSEC_REV	     0x1u
#define GPUIOV_VSEC_LENGTH   0x0f0u
#define GPUIOV_MAX_VFS	     16u
#define GPUIOV_FB_UNIT_SHIFT 24u /* sizes and offsets of VRAM are in units of 16 MiB */

enum gpuiov_offset {
	GPUIOV_CTRL = 0x08,
	GPUIOV_INTR_ENABLE = 0x0c,
	GPUIOV_INTR_STATUS = 0x10, /* write 1 to clear */
	GPUIOV_RESET_CONTROL = 0x14,
	GPUIOV_HVVM_MBOX1 = 0x1c,	  /* 2 bits per VF (VF1 first): valid, ack */
	GPUIOV_TOTAL_FB_AVAILABLE = 0x28, /* u16, in units of 16 MiB; read-only */
	GPUIOV_TOTAL_FB_CONSUMED = 0x2a,  /* u16, written by the PF driver; storage only */
	GPUIOV_GFX_SCH_OFFSET = 0x2e,	  /* u8, in units of 16 bytes, as on MI200, Navi32 */
	GPUIOV_VF1_FB = 0x38,	/* VF n: + 4 * (n - 1); VRAM [15:0] size, [31:16] offset; storage */
	GPUIOV_GFX_SCH0 = 0x80, /* the block to which GFX_SCH_OFFSET points */
};

/* registers of a scheduler block, in bytes from the start of the block */
enum gpuiov_sch_offset {
	GPUIOV_SCH_CMD_CONTROL = 0x04, /* GPUIOV_COMMAND(); drivers write +4..+7 as one dword */
	GPUIOV_SCH_FCN_ID = 0x05,
	GPUIOV_SCH_CMD_STATUS = 0x08,
	GPUIOV_SCH_VM_BUSY_STATUS = 0x0c, /* bit n - 1: VF n has work */
	/* dword: [4:0] VF number - 1, [23:16] ACTIVE_FUNCTION_STATUS, [31] a VF is loaded */
	GPUIOV_SCH_ACTIVE_FUNCTION_ID = 0x14,
	GPUIOV_SCH_ACTIVE_FUNCTION_STATUS = 0x16, /* u8, enum gpuiov_function_state */
};

#define GPUIOV_CMD_MASK	   0x0fu
#define GPUIOV_CMD_EXECUTE 0x10u
#define GPUIOV_FCN_PF	   0x00u
#define GPUIOV_FCN_VF	   0x80u /* | VF number - 1 */

/* command dword for function `fcn`; `next` is the next function of CONTEXT_SWITCH, else 0 */
#define GPUIOV_COMMAND(cmd, fcn, next)                                                             \
	((uint32_t)(cmd) | GPUIOV_CMD_EXECUTE | ((uint32_t)(fcn) << 8) | ((uint32_t)(next) << 16))

/*
 * Usual order for a function: INIT or LOAD, RUN, IDLE, then RUN again or SAVE. The table of
 * commands in docs/hardware-contract.md says when the device answers ABORTED. Source: GIM
 * libgv/core/amdgv_ws_state.c.
 */
enum gpuiov_command {
	GPUIOV_CMD_IDLE = 1,
	GPUIOV_CMD_SAVE = 2,
	GPUIOV_CMD_LOAD = 3,
	GPUIOV_CMD_RUN = 4,
	GPUIOV_CMD_CONTEXT_SWITCH = 5, /* IDLE and SAVE fcn, LOAD and RUN next */
	GPUIOV_CMD_INIT = 7,
	GPUIOV_CMD_CLEAR_VF_STATE = 0xa,
	GPUIOV_CMD_SHUTDOWN = 0xd,
};

/* value of CMD_STATUS; a command has ended when EXECUTE is clear, successfully if DONE */
enum gpuiov_status {
	GPUIOV_STATUS_DONE = 0x00,
	GPUIOV_STATUS_UNSUPPORTED = 0x01,
	GPUIOV_STATUS_ABORTED = 0x02,
	GPUIOV_STATUS_IDLING = 0x11,
	GPUIOV_STATUS_SAVING = 0x12,
	GPUIOV_STATUS_LOADING = 0x13,
	GPUIOV_STATUS_ENABLING = 0x14,
	GPUIOV_STATUS_INITIALISING = 0x15,
	GPUIOV_STATUS_PENDING = 0xff,
};

/* value of ACTIVE_FUNCTION_STATUS, and of SWITCH_STATE in the VGPU_STATUS of each VF */
enum gpuiov_function_state {
	GPUIOV_FUNCTION_IDLE = 0,
	GPUIOV_FUNCTION_ACTIVE = 1,
	GPUIOV_FUNCTION_IDLING = 2,
	GPUIOV_FUNCTION_SAVING = 3,
	GPUIOV_FUNCTION_LOADING = 4,
	GPUIOV_FUNCTION_STALLED = 5,
};

enum gpuiov_intr {
	GPUIOV_INTR_GFX_CMD_COMPLETE = 1u << 0,
	GPUIOV_INTR_GFX_HANG_NEED_FLR = 1u << 2,   /* softgpu never raises it */
	GPUIOV_INTR_GFX_VM_BUSY = 1u << 3,	   /* an inactive VF got work: WAKE */
	GPUIOV_INTR_GFX_QUANTUM_EXPIRED = 1u << 4, /* vgpu only: the active VF's quantum ended */
	GPUIOV_INTR_GFX_VM_IDLE = 1u << 5,	   /* vgpu only: the active VF is out of work */
	GPUIOV_INTR_VF_FLR = 1u << 6, /* vgpu only: a client has reset, attached or detached a VF */
	GPUIOV_INTR_HVVM_MBOX_ACK = 1u << 24,
	GPUIOV_INTR_HVVM_MBOX_VALID = 1u << 25,
};

/* MSI-X vectors of the PF (vgpu only) */
enum gpuiov_vector {
	GPUIOV_VECTOR_SWITCH = 0,  /* GFX_* bits */
	GPUIOV_VECTOR_MAILBOX = 1, /* HVVM_* and VF_FLR bits */
	GPUIOV_VECTOR_COUNT = 2,
};

/*
 * RESET_CONTROL (vgpu only): writing 1 resets the device, that is all VFs. Reads 1 until all resets
 * that the PF ordered are done, also resets of a single VF.
 */
#define GPUIOV_RESET_DEVICE 0x1u

/* reset values of VGPU_ID and VGPU_VERSION (vgpu only) */
#define VGPU_ID_MAGIC	       0x55504756u
#define VGPU_REGISTERS_VERSION 1u

/* VGPU_OP_COMMAND (vgpu only): bulk operations that the device carries out for the PF */
enum vgpu_hw_op {
	VGPU_OP_NONE = 0,
	VGPU_OP_DMA_IN = 3,	 /* copy from bus address SRC to DST in a VF's VRAM */
	VGPU_OP_DMA_OUT = 4,	 /* copy from SRC in a VF's VRAM to bus address DST */
	VGPU_OP_SCRUB_VRAM = 5,	 /* zero SIZE bytes at DST, in VRAM of a VF or the device */
	VGPU_OP_SCRUB_STATE = 6, /* reset a VF; its VRAM and the PF's settings of the VF stay */
	VGPU_OP_VERIFY_ZERO = 7, /* REFUSED unless SIZE bytes of device VRAM at SRC are zero */
	VGPU_OP_SAVE_STATE = 8,	 /* write state of a VF to bus address DST; sets SIZE; see below */
	VGPU_OP_LOAD_STATE = 9,	 /* load state of a VF from the SIZE bytes at bus address SRC */
};

/*
 * VGPU_OP_STATUS. A VRAM address of an operation is an offset in the VRAM of the VF that the
 * command names, or in device VRAM if the command names VF 0. A command written while the status is
 * BUSY is ignored. SAVE_STATE and LOAD_STATE are REFUSED while the VF runs, is in a step of a world
 * switch, or is stalled. Before SAVE_STATE, SIZE is the room at DST in bytes. In any other state of
 * the VF, SAVE_STATE sets SIZE to the length of the state, and is REFUSED if the state does not
 * fit.
 */
enum vgpu_hw_op_status {
	VGPU_OP_DONE = 0,
	VGPU_OP_BUSY = 1,
	VGPU_OP_REFUSED = 2,
};

/*
 * Entry of the run log (vgpu only, modelled on GIM's RLCV time-stamp log). A run is the time of a
 * VF from RUN until the engine is parked. The device appends one entry per run to a ring in the PF
 * driver's memory. The PF core computes service from these measured times, not from planned quanta.
 */
struct vgpu_hw_run_log_entry {
	uint64_t seq;		    /* written last; 1 for the first entry since LOG_SIZE was set */
	uint64_t run_start_ns;	    /* device clock */
	uint64_t run_end_ns;	    /* device clock: when the engine was parked */
	uint64_t wave_instructions; /* retired in this run */
	uint32_t vf;
	uint32_t park_ns;   /* from the request to stop until the engine was parked */
	uint32_t reason;    /* enum vgpu_hw_run_end */
	uint32_t switch_ns; /* time that SAVE, LOAD, INIT and RUN took since the previous entry */
	uint64_t idle_ns;   /* sum of the idle periods of the run that GFX_VM_IDLE reported */
	uint32_t reserved[2];
};
HW_ASSERT_SIZE(struct vgpu_hw_run_log_entry, 64);

/* why a run ended */
enum vgpu_hw_run_end {
	/* before the quantum ended: RUN, or IDLE or CONTEXT_SWITCH while the VF had work */
	VGPU_RUN_END_COMMAND = 0,
	VGPU_RUN_END_QUANTUM = 1,
	VGPU_RUN_END_NO_WORK = 2, /* IDLE or CONTEXT_SWITCH while the VF had no work */
	VGPU_RUN_END_RESET = 3,	  /* reset of the VF */
};

#endif
