// SPDX-License-Identifier: MIT
//
// run() executes a work-group until the budget is used up, a thread requests a stop, no wave can
// run, or every running wave only sleeps. A fault, an illegal instruction, and a trap without a
// trap handler also end the run. Waves run in slices of a few hundred instructions, so a wave that
// spins for another wave cannot starve the other wave. Everything that outlives run() is in the
// Workgroup: whatever the reason for the stop, the group may be saved, moved, and run again.
//
// Most of the execute unit is compiled twice, for x86-64-v2 and for AVX2 with FMA. The processor
// decides which build runs; the results of both are the same bit for bit. Threads run different
// groups at the same time; a Port, a DecodeCache and a Workgroup belong to one thread during run().
//
// Called by the command processor's compute units and by tests.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/isa/address_watch.h"
#include "pf-driver/softgpu/isa/decode.h"
#include "pf-driver/softgpu/isa/global_wave_sync.h"
#include "pf-driver/softgpu/isa/wave.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::isa {

/// Receives the interrupt messages of s_sendmsg while a kernel runs.
class MessageSink {
public:
    virtual ~MessageSink() = default;
    /// s_sendmsg(MSG_INTERRUPT): `payload` is M0. Called in the thread that runs the wave; must not
    /// run waves or access the group.
    virtual void interrupt(std::uint32_t payload) = 0;
    /// Like interrupt(), with the wave that sent the message, for sinks that need the wave's state.
    virtual void interrupt_from(const WaveState& /*sender*/, std::uint32_t payload) {
        interrupt(payload);
    }
};

/// Windows of LDS and scratch for flat instructions (SH_MEM_BASES): 4 GiB each, aligned to 4 GiB.
struct Apertures {
    std::uint64_t shared_base = 0x0001'0000'0000'0000;   ///< LDS
    std::uint64_t private_base = 0x0002'0000'0000'0000;  ///< scratch
};

/// The code to which waves of a process jump on a trap or an exception (SQ_SHADER_TBA, TMA). A wave
/// enters the handler if the wave has STATUS.TRAP_EN and is not in the handler already.
struct TrapHandler {
    std::uint64_t base = 0;         ///< address of the handler's first instruction; 0: no handler
    std::uint64_t memory = 0;       ///< address of the handler's memory
    std::uint32_t doorbell_id = 0;  ///< the answer to s_sendmsg(MSG_GET_DOORBELL)
};

/// The inputs of run() besides the group. run() keeps no reference beyond its call.
struct RunContext {
    mem::Port& port;
    DecodeCache& cache;
    const Clock& clock;
    MessageSink& messages;
    /// Any thread may set this flag; run() then returns within 32 instructions, at an instruction
    /// boundary.
    const std::atomic<bool>& stop;
    /// Largest number of instructions that all waves together execute; if 0, run() executes none.
    std::uint64_t budget = 0;
    Apertures apertures{};
    std::uint64_t reference_hz = 27'000'000;  ///< rate of s_memrealtime
    std::uint64_t core_hz = 1'000'000'000;    ///< rate of s_memtime
    TrapHandler trap{};
    GlobalWaveSync* wave_sync = nullptr;      ///< nullptr: ds_gws_* are illegal
    const AddressWatches* watches = nullptr;  ///< nullptr: the VF has none
    Vmid vmid{};                              ///< the VMID that the watches compare
};

/// After Budget or Stopped the caller runs the group again; the command processor handles the other
/// reasons.
enum class StopReason : std::uint8_t {
    Budget,  ///< the budget is used up, or every running wave has slept for several slices
    Stopped,
    AllWavesEnded,
    Fault,               ///< see RunResult::fault, lane and pc (of the instruction that faulted)
    IllegalInstruction,  ///< see RunResult::words and pc (of the illegal instruction)
    Trap,                ///< s_trap without a trap handler; the wave is Halted after the s_trap
    Halted,              ///< no wave can run, but not all have ended
};

/// The result of one call of run(). The waves are at an instruction boundary, whatever the reason.
struct RunResult {
    StopReason reason = StopReason::Budget;
    std::uint64_t retired = 0;  ///< instructions executed by this call
    /// True if every running wave only slept or waited in its last slice: a good moment to run
    /// another group.
    bool only_sleepers = false;
    // about the wave that caused Fault, IllegalInstruction or Trap
    std::uint32_t wave = 0;
    std::uint32_t lane = 0;
    std::uint64_t pc = 0;
    mem::Fault fault{};
    std::array<std::uint32_t, 2> words{};
    std::uint32_t trap_id = 0;
    /// True if the wave continues in its trap handler after Fault or IllegalInstruction.
    bool is_handled = false;
};

/// Runs the group's waves. The host's float mode (MXCSR) is the same before and after. For a group
/// without waves, the reason is AllWavesEnded. The result reports the errors of a wave.
[[nodiscard]] RunResult run(Workgroup& group, const RunContext& context);

/// The build of the execute unit that run() uses on this machine.
[[nodiscard]] Variant variant();
/// True if this machine can run the variant; for tests that compare the variants.
[[nodiscard]] bool has_variant(Variant which);

}  // namespace vgpu::softgpu::isa
