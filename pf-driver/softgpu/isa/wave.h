// SPDX-License-Identifier: MIT
//
// The state of waves and work-groups: everything that a running kernel owns except memory. The
// state is complete: a work-group can be saved after any return of run(), loaded elsewhere and
// continued, with the same results bit for bit.
//
// The scalar register file (WaveState::scalar) is indexed by operand number, as instructions encode
// it. It holds SGPRs, FLAT_SCRATCH, XNACK_MASK, VCC, trap temporaries, M0 and EXEC, so all of these
// are read and written alike. A row of the vector register file (Wave::vgprs) is one VGPR of all 64
// lanes. This register file has a row for each VGPR that the kernel declares, then scratch rows,
// which hold temporary values of an instruction.
//
// start_workgroup() (dispatch.h) fills a Workgroup, run() (execute.h) executes it, and the command
// processor keeps, saves and loads it. One thread at a time uses a Workgroup.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::isa {

/// Lanes of a wave; each lane executes one work-item.
inline constexpr unsigned kLanes = 64;
/// Largest number of VGPRs of a wave.
inline constexpr unsigned kMaxVgprs = 256;
/// Largest number of waves of a work-group, which has at most 1024 work-items.
inline constexpr unsigned kMaxWaves = 16;
/// Largest LDS of a work-group, and LDS of a CU (Vega ISA manual, "Local Data Share").
inline constexpr Bytes kMaxLds = 64_KiB;

/// Special registers of the scalar register file. A value is an operand number of the instruction
/// set; for a register of 64 bits, the operand number of the low half.
enum class ScalarReg : std::uint8_t {
    FlatScratch = 102,
    XnackMask = 104,
    Vcc = 106,
    Ttmp0 = 108,  ///< the first of 16 trap temporaries
    M0 = 124,
    Exec = 126,
};

/// Only a Running wave executes instructions.
enum class WavePhase : std::uint8_t {
    Running,
    AtBarrier,  ///< waits until every wave of the group has arrived or ended
    Halted,     ///< by s_sethalt, s_sendmsghalt, s_rfe, or a trap that no trap handler takes
    Ended,
};

/// One vector register of all lanes.
struct alignas(64) VgprRow {
    std::array<std::uint32_t, kLanes> lane;
};

/// The state of a wave except its vector registers. State streams contain a copy of this struct, so
/// a change of its layout requires a new kStateVersion (gpu_vf_control.cpp).
struct WaveState {
    /// The scalar register file.
    alignas(8) std::array<std::uint32_t, 128> scalar{};
    /// GPU address of the next instruction, a multiple of 4.
    std::uint64_t pc = 0;
    std::uint64_t retired = 0;  ///< instructions executed so far
    std::uint32_t mode = 0;     ///< MODE register (fields: namespace mode in env.h)
    /// TRAPSTS register, whose bits stay set until the program clears them (env.h).
    std::uint32_t trapsts = 0;
    /// HW_ID register: where the wave runs. In isa/, only s_getreg reads it.
    std::uint32_t hw_id = 0;
    std::uint16_t vgpr_count = 0;  ///< VGPRs that the kernel declares, 1 to kMaxVgprs
    /// GlobalWaveSync::Ticket while the wave waits in a ds_gws_* instruction, else 0.
    std::uint16_t sync_ticket = 0;
    WavePhase phase = WavePhase::Running;
    std::uint8_t scc = 0;  ///< the scalar condition code, 0 or 1
    /// STATUS.USER_PRIO, 0 to 3. Programs read and write it; the run loop ignores it.
    std::uint8_t priority = 0;
    std::uint8_t wave_in_group = 0;  ///< index of the wave in its group
    // The next three members are 0 or 1. They are not bool, because a damaged state stream may hold
    // other values, which load() refuses.
    std::uint8_t is_privileged = 0;    ///< STATUS.PRIV: in the trap handler
    std::uint8_t is_halting = 0;       ///< STATUS.HALT while privileged; takes effect at s_rfe
    std::uint8_t is_trap_enabled = 0;  ///< STATUS.TRAP_EN
    /// IB_STS bits 15 to 20 (FIRST_REPLAY, RCNT). Only trap handlers write them.
    std::uint8_t replay = 0;
    std::uint8_t sgpr_blocks = 0;  ///< GPR_ALLOC.SGPR_SIZE: blocks of 16, minus 1
    std::array<std::uint8_t, 7> reserved{};

    [[nodiscard]] std::uint32_t reg(ScalarReg which) const {
        return scalar[static_cast<std::size_t>(which)];
    }
    /// The register of 64 bits whose low half is `which`.
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

/// A wave: its state and its vector registers.
struct Wave {
    WaveState state;
    /// state.vgpr_count rows for the kernel's VGPRs, then kTemporaryRows scratch rows.
    std::vector<VgprRow> vgprs;

    /// Temporary rows for modifiers.cpp. Their contents do not outlive an instruction.
    static constexpr std::size_t kTemporaryRows = 8;
    /// Sets the number of VGPRs, 1 to kMaxVgprs, and zeroes all rows.
    void resize_vgprs(unsigned count);
};

/// A work-group: its waves, its local data share, its position in the grid. The struct holds the
/// whole state, so run() can continue with a moved (std::move) Workgroup.
struct Workgroup {
    std::vector<Wave> waves;
    /// At most kMaxLds. start_workgroup() rounds the size up to a multiple of 512 bytes.
    std::vector<std::byte> lds;
    std::array<std::uint32_t, 3> group_id{};  ///< position in the grid, in work-groups
    std::uint32_t next_wave = 0;              ///< where run() begins to look for a running wave
    std::uint64_t tag = 0;                    ///< unused, but part of the saved state

    /// True if every wave has ended; also true for a group without waves.
    [[nodiscard]] bool ended() const;
    /// Appends the whole state to the stream.
    void save(Writer& writer) const;
    /// Replaces the group by the group that save() wrote. EPROTO if the stream is truncated or
    /// invalid; the group is then empty.
    [[nodiscard]] Result<> load(Reader& reader);
};

}  // namespace vgpu::softgpu::isa
