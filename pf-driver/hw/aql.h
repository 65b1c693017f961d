/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * AQL packets (64 bytes), signals and queues as ROCr lays them out, and kernel descriptors as LLVM
 * does.
 * Source: HSA System Architecture 1.2; ROCR-Runtime amd_hsa_{signal,queue}.h; LLVM AMDGPUUsage.
 */
#ifndef VGPU_HW_AQL_H
#define VGPU_HW_AQL_H

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/types.h"

#define AQL_PACKET_BYTES 64u

enum aql_type {
	AQL_TYPE_VENDOR = 0,
	AQL_TYPE_INVALID = 1,
	AQL_TYPE_KERNEL_DISPATCH = 2,
	AQL_TYPE_BARRIER_AND = 3,
	AQL_TYPE_AGENT_DISPATCH = 4,
	AQL_TYPE_BARRIER_OR = 5,
};

/* format of a packet of type AQL_TYPE_VENDOR */
enum aql_vendor_format {
	AQL_VENDOR_PM4_IB = 1,
	AQL_VENDOR_BARRIER_VALUE = 2,
};

/* condition of struct aql_barrier_value; softgpu treats any other value as GTE */
enum aql_barrier_condition {
	AQL_CONDITION_EQ = 0,
	AQL_CONDITION_NE = 1,
	AQL_CONDITION_LT = 2,
	AQL_CONDITION_GTE = 3,
};

/* hsa_kernel_dispatch_packet_t; all addresses are GPUVM addresses of the queue's process */
struct aql_kernel_dispatch {
	uint16_t header;
	uint16_t setup;
	uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z; /* work-items */
	uint16_t reserved0;
	uint32_t grid_size_x, grid_size_y, grid_size_z; /* work-items */
	uint32_t private_segment_size;			/* bytes per work-item */
	uint32_t group_segment_size;			/* bytes per work-group */
	uint64_t kernel_object; /* address of struct aql_kernel_descriptor */
	uint64_t kernarg_address;
	uint64_t reserved1;
	uint64_t completion_signal; /* address of struct aql_signal; 0: no signal */
};
HW_ASSERT_SIZE(struct aql_kernel_dispatch, 64);
HW_ASSERT_OFFSET(struct aql_kernel_dispatch, kernel_object, 32);
HW_ASSERT_OFFSET(struct aql_kernel_dispatch, completion_signal, 56);

#define AQL_BARRIER_SIGNALS 5u

/*
 * hsa_barrier_and_packet_t and hsa_barrier_or_packet_t. dep_signal holds addresses of struct
 * aql_signal; 0: no signal. AND completes when every signal has value 0, OR when at least one has.
 * A packet without signals waits for none.
 */
struct aql_barrier {
	uint16_t header;
	uint16_t reserved0;
	uint32_t reserved1;
	uint64_t dep_signal[AQL_BARRIER_SIGNALS];
	uint64_t reserved2;
	uint64_t completion_signal;
};
HW_ASSERT_SIZE(struct aql_barrier, 64);

/* AMD's vendor packet that waits until `(signal value & mask) <condition> value` is true */
struct aql_barrier_value {
	uint16_t header;
	uint8_t format; /* AQL_VENDOR_BARRIER_VALUE */
	uint8_t reserved0;
	uint32_t reserved1;
	uint64_t signal; /* address of struct aql_signal; 0: do not wait */
	int64_t value;
	int64_t mask;
	uint32_t condition;
	uint32_t reserved2;
	uint64_t reserved3[2];
	uint64_t completion_signal;
};
HW_ASSERT_SIZE(struct aql_barrier_value, 64);

/* AMD's vendor packet that executes an IB of PM4 packets */
struct aql_pm4_ib {
	uint16_t header;
	uint16_t format;	     /* AQL_VENDOR_PM4_IB */
	uint32_t ib_packet[4];	     /* a whole INDIRECT_BUFFER packet */
	uint32_t dword_count_remain; /* always 0xa */
	uint32_t reserved[8];
	uint64_t completion_signal;
};
HW_ASSERT_SIZE(struct aql_pm4_ib, 64);

/*
 * amd_signal_t. When a packet completes, the CP writes start_ts and end_ts if the queue has
 * AQL_QUEUE_ENABLE_PROFILING, and then subtracts 1 from value. If event_mailbox_ptr is not 0, the
 * CP then stores event_id at this address and raises an end-of-pipe interrupt whose context is
 * event_id.
 */
struct aql_signal {
	int64_t kind;
	int64_t value;
	uint64_t event_mailbox_ptr;
	uint32_t event_id;
	uint32_t reserved0;
	uint64_t start_ts, end_ts; /* GPU clock */
	uint64_t queue_ptr;
	uint32_t reserved1[2];
};
HW_ASSERT_SIZE(struct aql_signal, 64);

/* amd_queue_t; CP_HQD_PQ_RPTR_REPORT_ADDR of an AQL queue points to read_dispatch_id */
struct aql_queue {
	uint32_t type, features;
	uint64_t base_address;
	uint64_t doorbell_signal;
	uint32_t size; /* packets */
	uint32_t reserved0;
	uint64_t id;
	uint32_t caps;
	uint32_t reserved1[3];
	uint64_t write_dispatch_id;
	uint32_t group_segment_aperture_base_hi;
	uint32_t private_segment_aperture_base_hi;
	uint32_t max_cu_id, max_wave_id;
	uint64_t max_legacy_doorbell_dispatch_id_plus_1;
	uint32_t legacy_doorbell_lock;
	uint32_t reserved2[9];
	uint64_t read_dispatch_id;
	uint32_t read_dispatch_id_field_base_byte_offset;
	uint32_t compute_tmpring_size;
	uint32_t scratch_resource_descriptor[4];
	uint64_t scratch_backing_memory_location;
	uint64_t scratch_backing_memory_byte_size;
	uint32_t scratch_wave64_lane_byte_size;
	uint32_t queue_properties;
	uint64_t scratch_last_used_index;
	uint64_t queue_inactive_signal;
	uint32_t reserved4[14];
};
HW_ASSERT_SIZE(struct aql_queue, 256);
HW_ASSERT_OFFSET(struct aql_queue, write_dispatch_id, 56);
HW_ASSERT_OFFSET(struct aql_queue, read_dispatch_id, 128);
HW_ASSERT_OFFSET(struct aql_queue, compute_tmpring_size, 140);
HW_ASSERT_OFFSET(struct aql_queue, scratch_backing_memory_location, 160);
HW_ASSERT_OFFSET(struct aql_queue, queue_inactive_signal, 192);

/* bits of aql_queue.queue_properties */
enum aql_queue_property {
	AQL_QUEUE_IS_PTR64 = 1u << 1,
	AQL_QUEUE_ENABLE_PROFILING = 1u << 3,
	AQL_QUEUE_USE_SCRATCH_ONCE = 1u << 4,
};

/*
 * Reason why the CP halted an AQL queue. The CP writes the reason to the signal at
 * queue_inactive_signal, if the queue has one. A memory fault, or a bad PM4 packet in an IB, halts
 * the queue without such a reason.
 */
enum aql_queue_error {
	AQL_QUEUE_ERROR_SCRATCH = 0x1,
	AQL_QUEUE_ERROR_DIMENSIONS = 0x2,
	AQL_QUEUE_ERROR_GROUP_MEMORY = 0x4,
	AQL_QUEUE_ERROR_CODE_OBJECT = 0x8,
	AQL_QUEUE_ERROR_PACKET = 0x20,
	AQL_QUEUE_ERROR_WORKGROUP_SIZE = 0x40,
	AQL_QUEUE_ERROR_REGISTERS = 0x80,
	AQL_QUEUE_ERROR_VENDOR_PACKET = 0x100,
	AQL_QUEUE_SCRATCH_RECLAIM = 0x200,
	AQL_QUEUE_ERROR_APERTURE = 0x20000000,
	AQL_QUEUE_ERROR_ILLEGAL_INSTRUCTION = 0x40000000,
};
/* also an error of this list (a trap), but the value does not fit into an int */
#define AQL_QUEUE_ERROR_TRAP 0x80000000u

/* s_trap id of a debug trap (HSA ABI): a wave without a trap handler continues */
#define AQL_TRAP_DEBUG 3u

/*
 * amdhsa kernel descriptor (LLVM AMDGPUUsage).
 * Entry point of the kernel = address of the descriptor + kernel_code_entry_byte_offset.
 */
struct aql_kernel_descriptor {
	uint32_t group_segment_fixed_size;   /* bytes per work-group */
	uint32_t private_segment_fixed_size; /* bytes per work-item */
	uint32_t kernarg_size;		     /* bytes */
	uint32_t reserved0;
	int64_t kernel_code_entry_byte_offset;
	uint8_t reserved1[20];
	uint32_t compute_pgm_rsrc3;
	uint32_t compute_pgm_rsrc1;
	uint32_t compute_pgm_rsrc2;
	uint16_t kernel_code_properties;
	uint16_t kernarg_preload;
	uint32_t reserved2;
};
HW_ASSERT_SIZE(struct aql_kernel_descriptor, 64);
HW_ASSERT_OFFSET(struct aql_kernel_descriptor, compute_pgm_rsrc1, 48);

#define AQL_MAX_LDS_BYTES   65536u
#define AQL_LDS_BLOCK_BYTES 512u /* unit of COMPUTE_PGM_RSRC2.LDS_SIZE */
#define AQL_WAVE_LANES	    64u

#endif
