// SPDX-License-Identifier: MIT
//
// run(): executes a work-group until its budget is used up, someone requests a stop, all waves have
// ended, or a wave does something that it may not do. Waves run in slices of a few hundred
// instructions, so a wave that spins for another one cannot starve it. Everything that outlives
// run() is in the Workgroup: whatever the reason for the stop, the group may be saved, moved, and
// run again.
//
// The unit exists twice, for x86-64-v2 and for AVX2 with FMA; the processor decides which one runs,
// and results are the same bit for bit. Threads run different groups at the same time; a Port, a
// DecodeCache and a Workgroup belong to one thread during run().
//
// Called by the packet processor's compute units and by tests.
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

/// Takes the messages of s_sendmsg while a kernel runs.
class MessageSink {
public:
    virtual ~MessageSink() = default;
    /// s_sendmsg(MSG_INTERRUPT): `payload` is M0. Called in the thread that runs the wave.
    /// Must not run waves or touch the group; the engine records it and requests the group back.
    virtual void interrupt(std::uint32_t payload) = 0;
    /// The same, with the wave that sent it, for sinks that need the wave's state.
    virtual void interrupt_from(const WaveState& /*sender*/, std::uint32_t payload) {
        interrupt(payload);
    }
};

/// Windows of LDS and scratch for flat instructions (SH_MEM_BASES): 4 GiB each, aligned to 4 GiB.
struct Apertures {
    std::uint64_t shared_base = 0x0001'0000'0000'0000;
    std::uint64_t private_base = 0x0002'0000'0000'0000;
};

/// The code to which waves of a process jump on a trap or an exception (SQ_SHADER_TBA, TMA). A wave
/// enters it if the wave has STATUS.TRAP_EN and is not in it already.
struct TrapHandler {
    std::uint64_t base = 0;         ///< address of its first instruction; 0: no handler
    std::uint64_t memory = 0;       ///< address of its memory
    std::uint32_t doorbell_id = 0;  ///< the answer to s_sendmsg(MSG_GET_DOORBELL)
};

/// References outlive the call of run(), which keeps none of them.
struct RunContext {
    mem::Port& port;
    DecodeCache& cache;
    const Clock& clock;
    MessageSink& messages;
    /// Set by any thread: run() returns within 32 instructions, at an instruction boundary.
    const std::atomic<bool>& stop;
    /// Never exceeded; 0 runs nothing.
    std::uint64_t budget = 0;  ///< instructions of all waves together
    Apertures apertures{};
    std::uint64_t reference_hz = 27'000'000;  ///< s_memrealtime
    std::uint64_t core_hz = 1'000'000'000;    ///< s_memtime
    TrapHandler trap{};
    GlobalWaveSync* wave_sync = nullptr;      ///< nullptr: ds_gws_* are illegal
    const AddressWatches* watches = nullptr;  ///< nullptr: the VF has none
    Vmid vmid{};                              ///< the VMID that the watches compare
};

/// Budget, Stopped: run the group again. The packet processor answers the others.
enum class StopReason : std::uint8_t {
    Budget,
    Stopped,
    AllWavesEnded,
    Fault,               ///< `fault`, `lane`; pc is that of the instruction
    IllegalInstruction,  ///< `words`; pc is that of the instruction
    Trap,                ///< `trap_id`; no handler: pc is behind s_trap, the wave is Halted
    Halted,              ///< every wave that has not ended is halted
};

/// The result of one call. In every case the waves are at an instruction boundary.
struct RunResult {
    StopReason reason = StopReason::Budget;
    std::uint64_t retired = 0;  ///< instructions executed by this call
    /// In its last slice every wave only slept or waited: a good moment to run something else.
    bool only_sleepers = false;
    // about the wave that caused Fault, IllegalInstruction or Trap
    std::uint32_t wave = 0;
    std::uint32_t lane = 0;
    std::uint64_t pc = 0;
    mem::Fault fault{};
    std::array<std::uint32_t, 2> words{};
    std::uint32_t trap_id = 0;
    bool is_handled = false;  ///< Fault, IllegalInstruction: the wave continues in its trap handler
};

/// The host's float mode (MXCSR) is the same before and after. A group without waves has ended.
/// Never throws; the result reports a wave's errors.
[[nodiscard]] RunResult run(Workgroup& group, const RunContext& context);

/// The build of the execute unit that run() uses on this machine.
[[nodiscard]] Variant variant();
/// For tests that compare the variants; false if this machine lacks it.
[[nodiscard]] bool has_variant(Variant which);

}  // namespace vgpu::softgpu::isa
