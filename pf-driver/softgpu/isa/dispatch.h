// SPDX-License-Identifier: MIT
//
// Turns the fields of a kernel descriptor and of a dispatch packet into the initial state of a
// work-group: user SGPRs in the order of the code properties, system SGPRs, local ids, EXEC of
// partial groups, scratch offsets, float mode. Sources: LLVM AMDGPUUsage "Initial Kernel Execution
// State" and the Vega ISA manual.
//
// This file accesses no guest memory: the command processor reads packet, descriptor and queue,
// fills a DispatchSpec, and calls check() for each dispatch and start_workgroup() for each group.
// All values come from a guest; check() refuses those that the other functions cannot handle.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/isa/wave.h"

namespace vgpu::softgpu::isa {

/// The inputs of a dispatch, from kernel descriptor, packet and queue. A DispatchSpec is trivially
/// copyable, because it is a part of DispatchState and so of state streams.
struct DispatchSpec {
    // kernel descriptor
    std::uint64_t entry = 0;      ///< address of the first instruction
    std::uint32_t pgm_rsrc1 = 0;  ///< COMPUTE_PGM_RSRC1 (LLVM AMDGPUUsage, kernel descriptor)
    std::uint32_t pgm_rsrc2 = 0;  ///< COMPUTE_PGM_RSRC2
    std::uint16_t code_properties = 0;
    /// 1 for PM4: user SGPRs come from COMPUTE_USER_DATA, not from code_properties; else 0. Not a
    /// bool, because a saved state may be damaged.
    std::uint8_t has_user_data = 0;
    std::uint8_t reserved = 0;
    // dispatch
    std::array<std::uint32_t, 3> group_size{1, 1, 1};  ///< work-items
    std::array<std::uint32_t, 3> grid_size{1, 1, 1};   ///< work-items, not groups
    /// Bytes per work-group; start_workgroup() rounds them up to a multiple of 512.
    std::uint32_t lds_bytes = 0;
    std::uint32_t private_bytes = 0;       ///< per work-item
    std::uint32_t scratch_wave_bytes = 0;  ///< scratch of one wave (WAVESIZE)
    std::uint64_t packet_address = 0;
    std::uint64_t queue_address = 0;
    std::uint64_t kernarg_address = 0;
    std::uint64_t dispatch_id = 0;
    // scratch of the queue
    std::array<std::uint32_t, 4> scratch_descriptor{};  ///< SRD for s[0:3]
    std::uint64_t scratch_base = 0;                     ///< flat scratch init
    std::array<std::uint32_t, 16> user_data{};
};

/// The reason why a dispatch cannot run; the command processor maps it to the queue's error code.
enum class DispatchError : std::uint8_t {
    None,
    Dimensions,    ///< a group or grid size is 0
    GroupTooBig,   ///< more than 1024 work-items
    LdsTooBig,     ///< more than 64 KiB
    UserSgprs,     ///< more than 16 user SGPRs, or fewer than the properties need
    EntryAddress,  ///< not 4-byte aligned or not a 48-bit address
};

/// The first error of the spec; None if the dispatch can run. Reads no guest memory.
[[nodiscard]] DispatchError check(const DispatchSpec& spec);

/// Work-groups in each dimension, partial ones included. This function and the functions below
/// require a spec that check() accepted.
[[nodiscard]] std::array<std::uint32_t, 3> group_counts(const DispatchSpec& spec);

/// Waves of a full group. The command processor counts scratch slots and occupancy in waves.
[[nodiscard]] std::uint32_t waves_per_group(const DispatchSpec& spec);

/// VGPRs of each wave: 4 to 256, a multiple of four (AMDGPUUsage, GRANULATED_WORKITEM_VGPR_COUNT).
[[nodiscard]] std::uint32_t vgprs_per_wave(const DispatchSpec& spec);

/// The MODE.EXCP_EN bits that a debugger requests.
struct LaunchExceptions {
    std::uint32_t enabled = 0;
    bool replace = false;  ///< true: replaces the kernel's bits; false: adds to them
};

/// The group to start, its scratch and its hardware id.
struct Placement {
    std::array<std::uint32_t, 3> group_id{};
    /// Wave i of the group owns scratch bytes [(first_scratch_slot + i) * scratch_wave_bytes, ...).
    std::uint32_t first_scratch_slot = 0;
    std::uint32_t hw_id = 0;  ///< HW_ID register of wave 0; of wave i: hw_id + i
    LaunchExceptions debug{};
};

/// Fills `group` for a spec that check() accepted and a group id inside the grid. Reuses the memory
/// of the earlier contents of `group`. LDS and registers without an initial value are zero, so
/// nothing leaks between kernels.
void start_workgroup(Workgroup& group, const DispatchSpec& spec, const Placement& placement);

}  // namespace vgpu::softgpu::isa
