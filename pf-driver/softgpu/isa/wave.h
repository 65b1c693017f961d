// SPDX-License-Identifier: MIT
//
// The state of waves and work-groups: everything that a running kernel owns except memory. The
// state is complete: a work-group can be saved after any return of run(), loaded elsewhere and
// continued, with the same results bit for bit.
//
// The scalar file is indexed by the operand number of the instruction set, so SGPRs, FLAT_SCRATCH,
// XNACK_MASK, VCC, trap temporaries, M0 and EXEC are read and written alike. A row of the vector
// file is one register of all 64 lanes; the file has a row for each register that the kernel
// declares, and scratch rows.
//
// Used by isa/dispatch (fills it), isa/execute (runs it) and the command processor (keeps, saves
// and loads it). One thread at a time uses a Workgroup.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::isa {

inline constexpr unsigned kLanes = 64;
inline constexpr unsigned kMaxVgprs = 256;
/// Limit of one work-group, which has at most 1024 work-items.
inline constexpr unsigned kMaxWaves = 16;
/// Limit of one work-group and of a CU (Vega ISA manual, "Local Data Share").
inline constexpr Bytes kMaxLds = 64_KiB;

/// Registers of the scalar file by operand number (fixed by the instruction set).
enum class ScalarReg : std::uint8_t {
    FlatScratch = 102,
    XnackMask = 104,
    Vcc = 106,
    Ttmp0 = 108,
    M0 = 124,
    Exec = 126,
};

enum class WavePhase : std::uint8_t {
    Running,
    AtBarrier,  ///< waits until every wave of the group has arrived or ended
    Halted,     ///< STATUS.HALT, or stopped by a trap without a trap handler
    Ended,
};

/// One vector register of all lanes.
struct alignas(64) VgprRow {
    std::array<std::uint32_t, kLanes> lane;
};

/// A wave without its vector registers. Another layout requires a new kStateVersion
/// (gpu_vf_control.cpp).
struct WaveState {
    alignas(8) std::array<std::uint32_t, 128> scalar{};
    /// GPU address of the next instruction, a multiple of 4.
    std::uint64_t pc = 0;
    std::uint64_t retired = 0;  ///< instructions executed so far
    std::uint32_t mode = 0;     ///< MODE register (rounding, denormals, clamp, index mode)
    /// TRAPSTS as s_getreg reads it; sticky bits of exceptions.
    std::uint32_t trapsts = 0;
    /// HW_ID: where the wave runs, for programs and debuggers; no code in isa/ depends on it.
    std::uint32_t hw_id = 0;
    std::uint16_t vgpr_count = 0;
    /// GlobalWaveSync::Ticket while the wave waits in a ds_gws_* instruction, else 0.
    std::uint16_t sync_ticket = 0;
    WavePhase phase = WavePhase::Running;
    std::uint8_t scc = 0;
    /// Set by s_setprio and read by s_getreg; waves take turns whatever their priority.
    std::uint8_t priority = 0;
    std::uint8_t wave_in_group = 0;
    // The next three are 0 or 1; not bool, because a saved state may be damaged.
    std::uint8_t is_privileged = 0;    ///< STATUS.PRIV: in the trap handler
    std::uint8_t is_halting = 0;       ///< STATUS.HALT while privileged; takes effect at s_rfe
    std::uint8_t is_trap_enabled = 0;  ///< STATUS.TRAP_EN
    std::uint8_t replay = 0;           ///< IB_STS.RCNT and FIRST_REPLAY, kept for the trap handler
    std::uint8_t sgpr_blocks = 0;      ///< GPR_ALLOC.SGPR_SIZE: blocks of 16, minus 1
    std::array<std::uint8_t, 7> reserved{};

    [[nodiscard]] std::uint32_t reg(ScalarReg which) const {
        return scalar[static_cast<std::size_t>(which)];
    }
    [[nodiscard]] std::uint64_t pair(ScalarReg which) const {
        const auto first = static_cast<std::size_t>(which);
        return join(scalar[first], scalar[first + 1]);
    }
    void set_pair(ScalarReg which, std::uint64_t value) {
        const auto first = static_cast<std::size_t>(which);
        scalar[first] = low32(value);
        scalar[first + 1] = high32(value);
    }
    [[nodiscard]] std::uint64_t exec() const { return pair(ScalarReg::Exec); }
    [[nodiscard]] std::uint64_t vcc() const { return pair(ScalarReg::Vcc); }
};

/// A wave: its state and its vector registers. Used by one thread at a time, like its group.
struct Wave {
    WaveState state;
    /// The kernel's registers, then kScratchRows for temporaries of instructions.
    std::vector<VgprRow> vgprs;

    /// Rows for modifiers and checks (modifiers.cpp); they hold nothing between instructions.
    static constexpr std::size_t kScratchRows = 8;
    /// Resizes and zeroes all registers. `count` is 1 to kMaxVgprs.
    void resize_vgprs(unsigned count);
};

/// A work-group: its waves, its local data share, its position in the grid. Moving this struct
/// moves the running work-group.
struct Workgroup {
    std::vector<Wave> waves;
    /// A multiple of 512 bytes (start_workgroup()); at most kMaxLds.
    std::vector<std::byte> lds;
    std::array<std::uint32_t, 3> group_id{};
    std::uint32_t next_wave = 0;  ///< index of the wave that runs next
    std::uint64_t tag = 0;        ///< unused, but part of the saved state

    /// True if every wave has ended, or there is none.
    [[nodiscard]] bool ended() const;
    /// Appends the whole state.
    void save(Writer& writer) const;
    /// The inverse of save(). An invalid stream is an error and leaves the group empty.
    [[nodiscard]] Result<> load(Reader& reader);
};

}  // namespace vgpu::softgpu::isa
