// SPDX-License-Identifier: MIT
//
// Traps and exceptions: into the trap handler and back, what it sees, and what happens without one.
#include <gtest/gtest.h>

#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::RunResult;
using softgpu::isa::StopReason;
using softgpu::isa::WavePhase;
using softgpu::isa::Workgroup;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum Kind : u32 { kTrap7 = 0, kAbort = 1, kIllegal = 2, kWildStore = 3 };

/// What tests/kernels/trap_handler.s writes.
struct Seen {
    u32 trap_id, doorbell_id, entries, trapsts, ttmp0, ttmp1, status, ttmp11, ttmp8;
};
constexpr u32 kPrivileged = 1u << 5, kTrapEnable = 1u << 6;
constexpr u32 kMemoryViolation = 1u << 8, kIllegalInstruction = 1u << 11, kXnackError = 1u << 28;
constexpr u32 kStrap = 0xbf920000;

class Trap : public testing::Test {
protected:
    void load(Kind kind, bool has_handler = true) {
        if (has_handler) gpu.set_trap_handler("trap_handler");
        gpu.trap.doorbell_id = 0x2a5;
        gpu.load_kernel("trap", 3);
        out = gpu.allocate(256);
        gpu.set_arguments(out, static_cast<u32>(kind));
        gpu.set_grid({});
        gpu.start(group, {5, 0, 0});
    }
    RunResult run() { return softgpu::isa::run(group, gpu.context()); }
    Seen seen() { return gpu.download<Seen>(gpu.trap.memory, 1)[0]; }
    u64 reported_pc() { return seen().ttmp0 | (u64{seen().ttmp1 & 0xffff} << 32); }
    u32 result() { return gpu.download<u32>(out, 1)[0]; }
    u32 word_at(u64 pc) { return gpu.download<u32>(pc, 1)[0]; }
    softgpu::isa::WaveState& wave() { return group.waves[0].state; }

    FlatGpu gpu;
    Workgroup group;
    u64 out = 0;
};

TEST_F(Trap, HandlerSeesTheTrapAndReturnsBehindIt) {
    load(kTrap7);
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(result(), 2u) << "SCC and the registers came back";
    EXPECT_EQ(seen().trap_id, 7u);
    EXPECT_EQ(seen().entries, 1u);
    EXPECT_EQ(seen().ttmp1 >> 16, 7u) << "no host trap, no rewind";
    EXPECT_EQ(word_at(reported_pc()), kStrap | 7u);
    EXPECT_EQ(seen().status & (kPrivileged | kTrapEnable), kPrivileged | kTrapEnable);
    EXPECT_EQ(seen().trapsts, 0u);
}

TEST_F(Trap, HandlerTellsTheHostAsThePrivilegedWave) {
    struct Log final : softgpu::isa::MessageSink {
        void interrupt(u32) override {}
        void interrupt_from(const softgpu::isa::WaveState& sender, u32 payload) override {
            payloads.push_back(payload);
            is_privileged = sender.is_privileged != 0;
        }
        std::vector<u32> payloads;
        bool is_privileged = false;
    } log;
    load(kTrap7);
    softgpu::isa::RunContext context{gpu.port, gpu.cache, gpu.clock, log, gpu.stop, 1u << 20};
    context.trap = gpu.trap;
    EXPECT_EQ(softgpu::isa::run(group, context).reason, StopReason::AllWavesEnded);
    EXPECT_EQ(seen().doorbell_id, 0x2a5u);
    EXPECT_EQ(log.payloads, std::vector<u32>{7u << 10 | 0x2a5u});
    EXPECT_TRUE(log.is_privileged);
}

TEST_F(Trap, TemporariesSayWhichWaveItIs) {
    load(kTrap7);
    (void)run();
    EXPECT_EQ(seen().ttmp8, 5u) << "group id x";
    constexpr u32 no_scratch = 1u << 6;
    EXPECT_EQ(seen().ttmp11, no_scratch | 0u) << "wave 0 of the group";
}

TEST_F(Trap, HaltThatTheHandlerLeavesTakesEffectOnReturn) {
    load(kAbort);
    EXPECT_EQ(run().reason, StopReason::Halted);
    EXPECT_EQ(seen().trap_id, 2u);
    EXPECT_EQ(seen().entries, 1u);
    EXPECT_EQ(wave().phase, WavePhase::Halted);
    EXPECT_EQ(wave().is_privileged, 0);
    EXPECT_EQ(wave().pc, reported_pc()) << "where the handler returned to";
    EXPECT_EQ(result(), 1u);
}

TEST_F(Trap, IllegalInstructionIsAnException) {
    load(kIllegal);
    RunResult stopped = run();
    EXPECT_EQ(stopped.reason, StopReason::IllegalInstruction);
    EXPECT_TRUE(stopped.is_handled);
    EXPECT_EQ(run().reason, StopReason::Halted) << "the handler halts the wave";
    EXPECT_EQ(seen().trap_id, 0u);
    EXPECT_EQ(seen().trapsts, kIllegalInstruction);
    EXPECT_EQ(word_at(reported_pc()), 0xbfff0000u);
}

TEST_F(Trap, MemoryFaultIsAnException) {
    load(kWildStore);
    const RunResult stopped = run();
    EXPECT_EQ(stopped.reason, StopReason::Fault);
    EXPECT_TRUE(stopped.is_handled);
    EXPECT_EQ(softgpu::raw(stopped.fault.va), 0x10u);
    EXPECT_EQ(run().reason, StopReason::Halted);
    EXPECT_EQ(seen().trapsts, kMemoryViolation | kXnackError);
}

TEST_F(Trap, WithoutAHandlerTheWaveStops) {
    load(kTrap7, false);
    const RunResult stopped = run();
    EXPECT_EQ(stopped.reason, StopReason::Trap);
    EXPECT_EQ(stopped.trap_id, 7u);
    EXPECT_EQ(wave().phase, WavePhase::Halted);
    load(kIllegal, false);
    EXPECT_FALSE(run().is_handled);
    load(kWildStore, false);
    EXPECT_FALSE(run().is_handled);
}

TEST_F(Trap, HandlerIsNotForWavesThatDoNotEnableIt) {
    load(kTrap7);
    wave().is_trap_enabled = 0;
    EXPECT_EQ(run().reason, StopReason::Trap);
    EXPECT_EQ(seen().entries, 0u);
}

TEST_F(Trap, BrokenHandlerStopsTheWave) {
    load(kTrap7);
    gpu.trap.base = 0x100;  // not mapped
    const RunResult stopped = run();
    EXPECT_EQ(stopped.reason, StopReason::Fault);
    EXPECT_FALSE(stopped.is_handled) << "a fault in the handler is nobody's";
}

TEST_F(Trap, ReturnOutsideOfAHandlerIsIllegal) {
    constexpr u32 rfe = 0xbe801f00;  // s_rfe_b64 s[0:1]
    gpu.load_words({rfe});
    gpu.set_grid({});
    gpu.start(group, {0, 0, 0});
    EXPECT_EQ(run().reason, StopReason::IllegalInstruction);
}

TEST_F(Trap, StatusIsTheHandlersToWrite) {
    constexpr u32 set_halt = 0xba000342;  // s_setreg_imm32_b32 hwreg(STATUS, 13, 1), 1
    constexpr u32 get_tma = 0xb880f812;   // s_getreg_b32 s0, hwreg(SQ_SHADER_TMA_LO)
    constexpr u32 endpgm = 0xbf810000;
    gpu.trap.memory = 0x123400;
    gpu.load_words({set_halt, 1, get_tma, endpgm});
    gpu.set_grid({});
    gpu.start(group, {0, 0, 0});
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().scalar[0], 0u) << "TMA is not a program's to read";
}

TEST_F(Trap, WaveInItsHandlerIsSavedAndContinued) {
    load(kTrap7);
    softgpu::isa::RunContext context = gpu.context();
    for (int i = 0; i < 10'000 && wave().is_privileged == 0; ++i) {
        context.max_instructions = 1;
        (void)softgpu::isa::run(group, context);
    }
    ASSERT_EQ(wave().is_privileged, 1);
    std::vector<std::byte> stream;
    softgpu::Writer writer(stream);
    group.save(writer);
    Workgroup other;
    softgpu::Reader reader(stream);
    ASSERT_TRUE(other.load(reader));
    group = std::move(other);
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(result(), 2u);
}

/// v_rcp_f32 v1, v1 of a wave whose lane 3 divides by zero.
class ArithmeticTrap : public testing::Test {
protected:
    static constexpr u32 kDivideByZero = 1u << 2, kModeShift = 12, kEndpgm = 0xbf810000;
    static constexpr u32 kRcp = 0x7e024501, kRcpIflag = 0x7e024701;  // v1 = op(v1)

    void load(u32 word, u32 enabled) { load(std::vector<u32>{word}, enabled); }
    void load(std::vector<u32> words, u32 enabled) {
        gpu.set_trap_handler("trap_handler");
        words.push_back(kEndpgm);
        gpu.load_words(words);
        gpu.set_grid({});
        gpu.start(group, {0, 0, 0});
        entry = wave().pc;
        wave().mode |= enabled << kModeShift;
        for (u32 l = 0; l < softgpu::isa::kLanes; ++l) v1().lane[l] = l == 3 ? 0 : 0x40000000;
    }
    RunResult run() { return softgpu::isa::run(group, gpu.context()); }
    softgpu::isa::WaveState& wave() { return group.waves[0].state; }
    softgpu::isa::VgprRow& v1() { return group.waves[0].vgprs[1]; }
    Seen seen() { return gpu.download<Seen>(gpu.trap.memory, 1)[0]; }

    FlatGpu gpu;
    Workgroup group;
    u64 entry = 0;
};

TEST_F(ArithmeticTrap, EnabledExceptionEntersTheHandlerBehindTheInstruction) {
    load(kRcp, kDivideByZero);
    EXPECT_EQ(run().reason, StopReason::Halted);
    EXPECT_EQ(seen().trap_id, 0u);
    EXPECT_EQ(seen().trapsts & 0x7f, kDivideByZero);
    EXPECT_EQ(seen().ttmp0, static_cast<u32>(entry + 4));
    EXPECT_EQ(v1().lane[3], 0x7f800000u) << "the result has been written";
    EXPECT_EQ(v1().lane[4], 0x3f000000u);
}

TEST_F(ArithmeticTrap, OthersOnlyLeaveTheirBit) {
    constexpr u32 overflow = 1u << 3;
    load(kRcp, overflow);
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(seen().entries, 0u);
    EXPECT_EQ(wave().trapsts & 0x7f, kDivideByZero);
}

TEST_F(ArithmeticTrap, LanesThatAreOffRaiseNothingAndKeepTheirValues) {
    load(kRcp, kDivideByZero);
    wave().set_pair(softgpu::isa::ScalarReg::Exec, ~u64{1u << 3});
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().trapsts & kDivideByZero, 0u);
    EXPECT_EQ(v1().lane[3], 0u);
    EXPECT_EQ(v1().lane[4], 0x3f000000u);
}

TEST_F(ArithmeticTrap, LanesThatTheRowMaskTurnsOffRaiseNothing) {
    load({0x7e0244fa, 0xef00e401}, kDivideByZero);  // quad_perm:[0,1,2,3] row_mask:0xe
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().trapsts & 0x7f, 0u);
    EXPECT_EQ(v1().lane[3], 0u);
    EXPECT_EQ(v1().lane[16], 0x3f000000u);
}

TEST_F(ArithmeticTrap, LanesWithoutASourceLaneRaiseNothing) {
    load({0x7e0244fa, 0xff011101}, kDivideByZero);  // row_shr:1
    wave().set_pair(softgpu::isa::ScalarReg::Exec, ~u64{1u << 3});
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().trapsts & 0x7f, 0u);
    EXPECT_EQ(v1().lane[0], 0x40000000u);
    EXPECT_EQ(v1().lane[4], 0x40000000u);
    EXPECT_EQ(v1().lane[5], 0x3f000000u);
}

TEST_F(ArithmeticTrap, LanesThatAreOffHaveNoExponentEither) {
    constexpr u32 overflow = 1u << 3, underflow = 1u << 4, inexact = 1u << 5;
    load({0xd2880001, 0x00020501}, overflow | underflow | inexact);  // v_ldexp_f32 v1, v1, v2
    wave().set_pair(softgpu::isa::ScalarReg::Exec, 1);
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().trapsts & 0x7f, 0u);
}

TEST_F(ArithmeticTrap, IntegerDivisionHasItsOwnBit) {
    constexpr u32 integer_divide = 1u << 6;
    load(kRcpIflag, integer_divide);
    EXPECT_EQ(run().reason, StopReason::Halted);
    EXPECT_EQ(seen().trapsts & 0x7f, integer_divide);
}

TEST_F(ArithmeticTrap, WaveWithoutAHandlerGoesOn) {
    load(kRcp, kDivideByZero);
    wave().is_trap_enabled = 0;
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().trapsts & 0x7f, kDivideByZero);
}

}  // namespace
}  // namespace vgpu::test
