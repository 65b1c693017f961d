// SPDX-License-Identifier: MIT
//
// start_workgroup() turns the description of a dispatch (AQL: kernel descriptor, packet and queue;
// PM4: registers of the queue) into the initial state of a work-group: user SGPRs, system SGPRs,
// trap temporaries (TTMP), M0, ids of work-items, EXEC, MODE, LDS. Sources: LLVM AMDGPUUsage,
// "Initial Kernel Execution State", and the Vega ISA manual.
//
// This file accesses no guest memory: the command processor reads the description, fills a
// DispatchSpec, and calls check() for each dispatch and start_workgroup() for each group.
// The values of a DispatchSpec come from a guest; check() refuses those that the other functions
// cannot handle.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/isa/wave.h"

namespace vgpu::softgpu::isa {

/// The description of a dispatch. A DispatchSpec is trivially copyable, because it is part of
/// DispatchState (cp/dispatch.h), which is part of state streams.
struct DispatchSpec {
    // AQL: from the kernel descriptor; PM4: from registers
    std::uint64_t entry = 0;            ///< GPU address of the first instruction
    std::uint32_t pgm_rsrc1 = 0;        ///< COMPUTE_PGM_RSRC1 (LLVM AMDGPUUsage, kernel descriptor)
    std::uint32_t pgm_rsrc2 = 0;        ///< COMPUTE_PGM_RSRC2
    std::uint16_t code_properties = 0;  ///< KERNEL_CODE_PROPERTIES of the descriptor
    /// 1 for PM4: user SGPRs come from COMPUTE_USER_DATA, not from code_properties; else 0. Not a
    /// bool, because a damaged state stream may hold other values.
    std::uint8_t has_user_data = 0;
    std::uint8_t reserved = 0;
    // dispatch
    std::array<std::uint32_t, 3> group_size{1, 1, 1};  ///< work-items
    std::array<std::uint32_t, 3> grid_size{1, 1, 1};   ///< work-items, not groups
    /// Bytes per work-group; start_workgroup() rounds them up to a multiple of 512.
    std::uint32_t lds_bytes = 0;
    std::uint32_t private_bytes = 0;       ///< scratch of one work-item
    std::uint32_t scratch_wave_bytes = 0;  ///< scratch of one wave (WAVESIZE)
    // only for AQL; else 0
    std::uint64_t packet_address = 0;   ///< DISPATCH_PTR: GPU address of the packet
    std::uint64_t queue_address = 0;    ///< QUEUE_PTR: GPU address of amd_queue_t
    std::uint64_t kernarg_address = 0;  ///< KERNARG_SEGMENT_PTR: GPU address of the arguments
    std::uint64_t dispatch_id = 0;      ///< DISPATCH_ID: index of the packet
    // scratch of the queue
    std::array<std::uint32_t, 4> scratch_descriptor{};  ///< buffer descriptor
    std::uint64_t scratch_base = 0;                     ///< GPU address (FLAT_SCRATCH_INIT)
    /// COMPUTE_USER_DATA_0 to 15; used only if has_user_data is set.
    std::array<std::uint32_t, 16> user_data{};
};

/// The reason why a dispatch cannot run. For AQL, the command processor turns the reason into an
/// error code of the queue (AQL_QUEUE_ERROR_*).
enum class DispatchError : std::uint8_t {
    None,
    Dimensions,    ///< a group or grid size is 0
    GroupTooBig,   ///< more than 1024 work-items
    LdsTooBig,     ///< more than 64 KiB
    UserSgprs,     ///< more than 16 user SGPRs, or fewer than code_properties requires
    EntryAddress,  ///< not a multiple of 4, or more than 48 bits
};

/// The first error of the spec; None if the dispatch can run. Reads no guest memory.
[[nodiscard]] DispatchError check(const DispatchSpec& spec);

/// Number of work-groups in each dimension, including partial groups. This function and the
/// functions below require a spec that check() accepted.
[[nodiscard]] std::array<std::uint32_t, 3> group_counts(const DispatchSpec& spec);

/// Number of waves of a full group. The command processor counts scratch slots and occupancy in
/// waves.
[[nodiscard]] std::uint32_t waves_per_group(const DispatchSpec& spec);

/// Number of VGPRs of each wave: 4 to 256, a multiple of four (LLVM AMDGPUUsage,
/// GRANULATED_WORKITEM_VGPR_COUNT).
[[nodiscard]] std::uint32_t vgprs_per_wave(const DispatchSpec& spec);

/// The exceptions that a debugger requests for new waves.
struct LaunchExceptions {
    std::uint32_t enabled = 0;  ///< bits of MODE.EXCP_EN, from bit 0 on
    bool replace = false;       ///< true: replaces the kernel's bits; false: adds to them
};

/// The group to start, its scratch and its hardware id.
struct Placement {
    std::array<std::uint32_t, 3> group_id{};
    /// Wave i of the group owns slot first_scratch_slot + i of the queue's scratch. Each slot has
    /// DispatchSpec::scratch_wave_bytes bytes.
    std::uint32_t first_scratch_slot = 0;
    std::uint32_t hw_id = 0;   ///< HW_ID register of wave 0; wave i has hw_id + i
    LaunchExceptions debug{};  ///< for all waves of the group
};

/// Makes `group` the work-group at placement.group_id, which must be inside the grid. Reuses the
/// memory that `group` already has. LDS, and registers without an initial value, become zero, so
/// that a kernel cannot read the data of an earlier kernel.
void start_workgroup(Workgroup& group, const DispatchSpec& spec, const Placement& placement);

}  // namespace vgpu::softgpu::isa
