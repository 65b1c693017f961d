// SPDX-License-Identifier: MIT
//
// run() executes the waves of a work-group. It returns when they have executed
// RunContext::max_instructions instructions, when a thread requests a stop, when no wave can run,
// or when all running waves wait (StopReason::Budget). A fault, an illegal instruction, or a trap
// that no trap handler takes also ends run().
//
// Waves run in slices. A slice is a run of one wave, of at most 287 instructions, after which run()
// picks the next wave. So a wave that spins cannot starve the wave that it waits for. run() keeps
// the whole state of the waves in the Workgroup. So whatever the reason of a return, the group may
// then be saved, moved, and run again.
//
// The execute units are the files unit_*.cpp, which hold most of the functions that execute
// instructions. Most execute units are compiled twice, for x86-64-v2 and for AVX2 with FMA. The
// host's processor determines which build runs; both builds give the same results bit for bit.
// Threads run different groups at the same time; a Port, a DecodeCache and a Workgroup belong to
// one thread during run().
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
    /// MSG_INTERRUPT of s_sendmsg or s_sendmsghalt: `payload` is M0. Called in the thread that runs
    /// the wave; must not run waves or access the group.
    virtual void interrupt(std::uint32_t payload) = 0;
    /// run() calls this function. A sink that needs the state of the sending wave overrides it.
    virtual void interrupt_from(const WaveState& /*sender*/, std::uint32_t payload) {
        interrupt(payload);
    }
};

/// Windows of LDS and scratch for flat instructions (SH_MEM_BASES), which AMD calls apertures: 4
/// GiB each, aligned to 4 GiB.
struct Apertures {
    std::uint64_t shared_base = 0x0001'0000'0000'0000;   ///< LDS
    std::uint64_t private_base = 0x0002'0000'0000'0000;  ///< scratch
};

/// The code to which waves of a process jump on a trap, an exception, a fault or an illegal
/// instruction (SQ_SHADER_TBA and TMA). A wave enters the handler if STATUS.TRAP_EN is set and the
/// wave is not in the handler already.
struct TrapHandler {
    std::uint64_t base = 0;         ///< address of the handler's first instruction; 0: no handler
    std::uint64_t memory = 0;       ///< address of the memory that the handler uses
    std::uint32_t doorbell_id = 0;  ///< the answer to s_sendmsg(MSG_GET_DOORBELL)
};

/// The inputs of run(), except the group. The objects must exist until run() returns.
struct RunContext {
    mem::Port& port;
    DecodeCache& cache;
    const Clock& clock;
    MessageSink& messages;
    /// Any thread may set this flag; run() then returns within 32 instructions, at an instruction
    /// boundary.
    const std::atomic<bool>& stop;
    /// Limit of the instructions that all waves together execute in this call; 0: run() executes
    /// none.
    std::uint64_t max_instructions = 0;
    Apertures apertures{};
    std::uint64_t reference_hz = 27'000'000;  ///< ticks of s_memrealtime per second
    std::uint64_t core_hz = 1'000'000'000;    ///< ticks of s_memtime per second
    TrapHandler trap{};
    GlobalWaveSync* wave_sync = nullptr;      ///< nullptr: ds_gws_* are illegal
    const AddressWatches* watches = nullptr;  ///< nullptr: no access is compared
    Vmid vmid{};                              ///< VMID of the group; `watches` needs it
};

/// Why run() returned. After Budget or Stopped, the caller runs the group again later.
enum class StopReason : std::uint8_t {
    /// RunContext::max_instructions is used up, or each running wave has ended several slices in a
    /// row with a
    /// sleep (s_sleep) or a wait (ds_gws_*).
    Budget,
    Stopped,  ///< RunContext::stop was set
    AllWavesEnded,
    Fault,               ///< see RunResult::fault, lane and pc (of the instruction that faulted)
    IllegalInstruction,  ///< see RunResult::words and pc (of the illegal instruction)
    Trap,                ///< a trap that no trap handler takes; the wave is Halted after the s_trap
    Halted,              ///< no wave can run, but not all waves have ended
};

/// The result of one call of run(). After every call, the waves are at an instruction boundary.
struct RunResult {
    StopReason reason = StopReason::Budget;
    std::uint64_t retired = 0;  ///< instructions executed by this call
    /// For tests: true if the last slice of every running wave ended with a sleep (s_sleep) or a
    /// wait (ds_gws_*).
    bool only_sleepers = false;
    // about the wave that caused Fault, IllegalInstruction or Trap
    std::uint32_t wave = 0;  ///< index in the group
    std::uint32_t lane = 0;  ///< Fault: the first lane that faulted; 0 for code or scalar memory
    /// Fault, IllegalInstruction: address of the instruction. Trap: address after the s_trap.
    std::uint64_t pc = 0;
    mem::Fault fault{};  ///< Fault: why the access failed
    /// Machine words of the instruction; 0 if they could not be read.
    std::array<std::uint32_t, 2> words{};
    std::uint32_t trap_id = 0;  ///< Trap: the operand of s_trap, 0 to 255
    /// True if the wave continues in its trap handler after Fault or IllegalInstruction.
    bool is_handled = false;
};

/// Runs the group's waves. The host's float mode (MXCSR) is the same before and after. For a group
/// without waves, the reason is AllWavesEnded.
[[nodiscard]] RunResult run(Workgroup& group, const RunContext& context);

/// The variant that a DecodeCache, and so run(), uses on this machine, unless the DecodeCache is
/// constructed with another.
[[nodiscard]] Variant variant();
/// True if this machine can run the variant; for tests that compare the variants.
[[nodiscard]] bool has_variant(Variant which);

}  // namespace vgpu::softgpu::isa
