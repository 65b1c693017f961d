// SPDX-License-Identifier: MIT
//
// From the fields of a kernel descriptor and of a dispatch packet to the first state of a
// work-group: user SGPRs in the order of the code properties, system SGPRs, local ids, EXEC of
// partial groups, scratch offsets, float mode. Sources: LLVM AMDGPUUsage "Initial Kernel Execution
// State" and the Vega ISA manual.
//
// No memory is touched here: the packet processor reads packet, descriptor and queue, fills a
// DispatchSpec, asks check() once per dispatch and start_workgroup() once per group. All values
// come from a guest; check() is what makes them safe.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/isa/wave.h"

namespace vgpu::softgpu::isa {

/// Flat: a part of DispatchState, so of state streams.
struct DispatchSpec {
    // kernel descriptor
    std::uint64_t entry = 0;  ///< address of the first instruction
    /// COMPUTE_PGM_RSRC1 and 2, in the layout of the registers (LLVM AMDGPUUsage, kernel
    /// descriptor).
    std::uint32_t pgm_rsrc1 = 0;
    std::uint32_t pgm_rsrc2 = 0;
    std::uint16_t code_properties = 0;
    /// PM4 dispatches: COMPUTE_USER_DATA registers instead of code_properties. 0 or 1; not a bool,
    /// since a saved state may be damaged.
    std::uint8_t has_user_data = 0;
    std::uint8_t reserved = 0;
    // dispatch
    std::array<std::uint32_t, 3> group_size{1, 1, 1};  ///< work-items
    std::array<std::uint32_t, 3> grid_size{1, 1, 1};   ///< work-items, not groups
    /// Of a work-group; rounded up to 512.
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

/// Why a dispatch cannot run; the packet processor maps it to the queue's error code.
enum class DispatchError : std::uint8_t {
    None,
    Dimensions,    ///< a group or grid size is 0
    GroupTooBig,   ///< more than 1024 work-items
    LdsTooBig,     ///< more than 64 KiB
    UserSgprs,     ///< more user SGPRs than there are, or fewer than the properties need
    EntryAddress,  ///< not 4-byte aligned or not a 48-bit address
};

/// Looks at the spec alone, never at memory; the first thing that is wrong.
[[nodiscard]] DispatchError check(const DispatchSpec& spec);

/// Work-groups in each dimension; a last, partial group counts.
/// For a spec that check() accepted, as all functions below.
[[nodiscard]] std::array<std::uint32_t, 3> group_counts(const DispatchSpec& spec);

/// Waves of a full group: what scratch slots and occupancy are counted in.
[[nodiscard]] std::uint32_t waves_per_group(const DispatchSpec& spec);

/// VGPRs that each wave gets (4 to 256).
/// In the granule of gfx9, four registers (LLVM AMDGPUUsage, GRANULATED_WORKITEM_VGPR_COUNT).
[[nodiscard]] std::uint32_t vgprs_per_wave(const DispatchSpec& spec);

/// What a debugger wants of MODE.EXCP_EN.
struct LaunchExceptions {
    std::uint32_t enabled = 0;
    bool replace = false;  ///< instead of what the kernel enables; else besides
};

/// Where one group goes.
struct Placement {
    std::array<std::uint32_t, 3> group_id{};
    /// Wave i of the group owns scratch bytes [(first_scratch_slot + i) * scratch_wave_bytes, ...).
    std::uint32_t first_scratch_slot = 0;
    std::uint32_t hw_id = 0;  ///< HW_ID register of wave 0; the wave number is added
    LaunchExceptions debug{};
};

/// Fills `group` for a spec that check() accepted and a group id inside the grid. Memory of an
/// earlier group is reused; registers and LDS start as zero, so nothing leaks between kernels.
void start_workgroup(Workgroup& group, const DispatchSpec& spec, const Placement& placement);

}  // namespace vgpu::softgpu::isa
