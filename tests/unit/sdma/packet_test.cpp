// SPDX-License-Identifier: MIT
//
// One claim per packet that synchronises or steers; data movers are in transfer_test.cpp.
#include <gtest/gtest.h>

#include "pf-driver/hw/tc_op.h"
#include "tests/unit/sdma/sdma_rig.h"

namespace vgpu::softgpu::sdma {
namespace {

using namespace test;
using softgpu::mem::kFbBase;

constexpr std::uint64_t kData = kUserBase;       // user VA
constexpr std::uint64_t kKernelData = 0x140000;  // VRAM offset
constexpr std::uint64_t kKernelVa = kFbBase + kKernelData;
constexpr std::uint32_t kEqual = 3;

struct SdmaPacket : testing::Test {
    SdmaRig rig;
    SdmaPacket() {
        rig.enable_kernel_ring();
        EXPECT_TRUE(rig.map_user());
    }
    std::uint32_t kernel_word(std::uint64_t offset = 0) const {
        return rig.mem.get<std::uint32_t>(kKernelData + offset);
    }
    const Engine::State& state() const { return rig.engine->state(); }
};

TEST_F(SdmaPacket, NopPassesOverItsData) {
    const std::uint32_t nop = header(SDMA_OP_NOP) | HW_PREP(SDMA_NOP, COUNT, 3);
    rig.submit(Dwords{header(SDMA_OP_NOP), nop, ~0u, ~0u, ~0u} + fence(kKernelVa, 7));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(kernel_word(), 7u);
    EXPECT_EQ(state().bad_packets, 0u);
}

TEST_F(SdmaPacket, FenceWritesOneDword) {
    rig.mem.put<std::uint64_t>(kKernelData, ~0ull);
    rig.submit(fence(kKernelVa, 0x1234));
    rig.run();
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelData), 0xffffffff00001234u);
}

TEST_F(SdmaPacket, TrapRaisesAnInterruptWithVmidAndPasid) {
    rig.submit_user(trap(0x12345678));
    rig.submit(trap(0x55));
    rig.run();
    ASSERT_EQ(rig.interrupts.size(), 2u);
    const bool is_user_first = rig.interrupts[0].vmid == raw(kUserVmid);
    const ih_iv_entry& user = rig.interrupts[is_user_first ? 0 : 1];
    const ih_iv_entry& kernel = rig.interrupts[is_user_first ? 1 : 0];
    EXPECT_EQ(user.client_id, IH_CLIENT_SDMA0);
    EXPECT_EQ(user.source_id, IH_SOURCE_SDMA_TRAP);
    EXPECT_EQ(user.ring_id, 1);
    EXPECT_EQ(user.vmid, raw(kUserVmid));
    EXPECT_EQ(user.pasid, kUserPasid);
    EXPECT_EQ(user.source_data[0], 0x2345678u) << "28 bits";
    EXPECT_EQ(kernel.ring_id, 0);
    EXPECT_EQ(kernel.vmid, 0);
    EXPECT_EQ(kernel.source_data[0], 0x55u);
}

TEST_F(SdmaPacket, TrapIsSilentWhenTheDriverHasNotEnabledIt) {
    rig.mem.write_reg(REG_SDMA0_SDMA0_CNTL, 0);
    rig.submit(trap(1) + fence(kKernelVa, 1));
    rig.run();
    EXPECT_TRUE(rig.interrupts.empty());
    EXPECT_EQ(kernel_word(), 1u);
}

TEST_F(SdmaPacket, EngineOneIsAnotherClient) {
    SdmaRig other(1);
    other.enable_kernel_ring();
    other.submit(trap(1));
    other.run();
    ASSERT_EQ(other.interrupts.size(), 1u);
    EXPECT_EQ(other.interrupts[0].client_id, IH_CLIENT_SDMA1);
}

TEST_F(SdmaPacket, PollMemoryHoldsTheQueueUntilTheValueComes) {
    rig.submit(poll_memory(kKernelVa, kEqual, 5, 0xff) + fence(kKernelVa + 8, 1));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_TRUE(rig.engine->needs_polling());
    EXPECT_EQ(kernel_word(8), 0u);
    rig.mem.put(kKernelData, 0x105u);
    EXPECT_TRUE(rig.engine->has_work());
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(kernel_word(8), 1u);
    EXPECT_FALSE(rig.engine->needs_polling());
}

TEST_F(SdmaPacket, PollFunctionsCompareUnsigned) {
    struct Row {
        std::uint32_t function, value, reference;
        bool passes;
    };
    const Row rows[] = {{0, 9, 1, true},  {1, 1, 2, true},          {1, 2, 2, false},
                        {2, 2, 2, true},  {2, 3, 2, false},         {3, 2, 2, true},
                        {3, 1, 2, false}, {4, 1, 2, true},          {4, 2, 2, false},
                        {5, 2, 2, true},  {5, 1, 2, false},         {6, 0x80000000, 2, true},
                        {6, 2, 2, false}, {1, 0x80000000, 2, false}};
    for (const Row& row : rows) {
        rig.enable_kernel_ring();
        rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL, 0);
        rig.enable_kernel_ring();
        rig.mem.put(kKernelData, row.value);
        rig.submit(poll_memory(kKernelVa, row.function, row.reference));
        EXPECT_EQ(rig.run(), row.passes ? StepResult::Idle : StepResult::Blocked)
            << "function " << row.function << " value " << row.value;
    }
}

TEST_F(SdmaPacket, ABlockedQueueDoesNotHoldTheOthers) {
    rig.submit(poll_memory(kKernelVa, kEqual, 1));
    rig.submit_user(fence(kData, 0x77));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData), 0x77u);
}

TEST_F(SdmaPacket, APollWithRetriesGivesUp) {
    rig.submit(poll_memory(kKernelVa, kEqual, 1, ~0u, 3) + fence(kKernelVa + 8, 9));
    int steps = 0;
    while (kernel_word(8) == 0 && steps < 10) {
        EXPECT_TRUE(rig.engine->has_work()) << "each try counts";
        (void)rig.engine->step();
        ++steps;
        EXPECT_EQ(rig.engine->needs_polling(), steps < 4);
    }
    EXPECT_EQ(kernel_word(8), 9u);
    EXPECT_EQ(steps, 4);
    EXPECT_FALSE(rig.engine->needs_polling());
}

TEST_F(SdmaPacket, PollRegisterWaitsForTheRegister) {
    rig.submit(poll_register(REG_GC_SCRATCH_REG0, kEqual, 4, 0xf) + fence(kKernelVa, 1));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_TRUE(rig.engine->needs_polling()) << "somebody has to look";
    rig.mem.write_reg(REG_GC_SCRATCH_REG0, 0x14);
    EXPECT_TRUE(rig.engine->has_work());
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(kernel_word(), 1u);
}

TEST_F(SdmaPacket, HdpFlushWritesTheRequestOnceAndWaitsForDone) {
    Dwords flush = poll_register(REG_NBIO_GPU_HDP_FLUSH_DONE, kEqual, 1u << 10, 1u << 10);
    flush[0] |= HW_PREP(SDMA_POLL_REGMEM, HDP_FLUSH, 1);
    flush[2] = REG_NBIO_GPU_HDP_FLUSH_REQ * 4;
    rig.submit(flush + fence(kKernelVa, 1));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_EQ(rig.mem.read_reg(REG_NBIO_GPU_HDP_FLUSH_REQ), 1u << 10);
    rig.mem.write_reg(REG_NBIO_GPU_HDP_FLUSH_REQ, 0);
    rig.run();
    EXPECT_EQ(rig.mem.read_reg(REG_NBIO_GPU_HDP_FLUSH_REQ), 0u) << "not written again";
    rig.mem.regs.set(RegisterIndex{REG_NBIO_GPU_HDP_FLUSH_DONE}, 1u << 10);
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(kernel_word(), 1u);
}

TEST_F(SdmaPacket, RocrsHdpFlushWritesNoRegister) {
    rig.submit_user(Dwords{header(SDMA_OP_POLL_REGMEM), 0, 0x80000000, 0, 0, 0} + fence(kData, 3));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData), 3u);
    EXPECT_EQ(rig.mem.read_reg(0), 0u);
}

TEST_F(SdmaPacket, RegistersAreForTheKernelOnly) {
    const Dwords attempts[] = {register_write(REG_GC_VM_CONTEXT0_CNTL, 1),
                               poll_register(REG_GC_SCRATCH_REG0, kEqual, 0)};
    std::uint64_t bad = 0;
    for (const Dwords& attempt : attempts) {
        ASSERT_TRUE(rig.map_user());
        rig.submit_user(attempt + fence(kData, 1));
        rig.run();
        EXPECT_EQ(state().bad_packets, ++bad);
        EXPECT_EQ(rig.get_user<std::uint32_t>(kData), 0u);
        rig.engine->unmap(SdmaRig::doorbell_of(0));
    }
    EXPECT_EQ(rig.mem.read_reg(REG_GC_VM_CONTEXT0_CNTL), 0u);
}

TEST_F(SdmaPacket, AnIbInAUserVmidHasNoPrivilegeEither) {
    const Dwords ib = register_write(REG_GC_SCRATCH_REG0, 0x1);
    for (std::size_t i = 0; i < ib.size(); ++i) rig.put_user(kData + 4 * i, ib[i]);
    rig.submit(indirect(kData, static_cast<std::uint32_t>(ib.size()), raw(kUserVmid)));
    rig.run();
    EXPECT_EQ(rig.mem.read_reg(REG_GC_SCRATCH_REG0), 0u);
    EXPECT_EQ(state().bad_packets, 1u);
}

TEST_F(SdmaPacket, SrbmWriteHonoursByteEnables) {
    rig.mem.write_reg(REG_GC_SCRATCH_REG0, 0xaabbccdd);
    rig.submit(register_write(REG_GC_SCRATCH_REG0, 0x11223344, 0x5));
    rig.run();
    EXPECT_EQ(rig.mem.read_reg(REG_GC_SCRATCH_REG0), 0xaa22cc44u);
}

TEST_F(SdmaPacket, TlbFlushByPacketEndsStaleTranslations) {
    rig.submit_user(fence(kData, 1));
    rig.run();
    rig.mem.map_page(rig.user_root, kData, (kKernelData + 0x1000) | kRwx);
    rig.submit_user(fence(kData, 2));
    rig.run();
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData), 2u) << "stale: still the old page";
    const std::uint32_t request = REG_MMHUB_VM_INVALIDATE_ENG0_REQ;
    const std::uint32_t acknowledge = REG_MMHUB_VM_INVALIDATE_ENG0_ACK;
    const std::uint32_t vmid = 1u << raw(kUserVmid);
    rig.submit(register_write(request, vmid) + poll_register(acknowledge, kEqual, vmid, vmid));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    rig.submit_user(fence(kData, 3));
    rig.run();
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData), 2u);
    EXPECT_EQ(kernel_word(0x1000), 3u);
}

TEST_F(SdmaPacket, ConditionalPassesOverExactlyItsDwords) {
    const Dwords guarded = fence(kKernelVa + 8, 1);
    const auto conditional = [&](std::uint32_t reference) {
        return Dwords{header(SDMA_OP_COND_EXE), low32(kKernelVa), high32(kKernelVa), reference,
                      static_cast<std::uint32_t>(guarded.size())} +
               guarded;
    };
    rig.mem.put(kKernelData, 5u);
    rig.submit(conditional(6) + fence(kKernelVa + 16, 1));
    rig.run();
    EXPECT_EQ(kernel_word(8), 0u);
    EXPECT_EQ(kernel_word(16), 1u);
    rig.submit(conditional(5));
    rig.run();
    EXPECT_EQ(kernel_word(8), 1u);
}

TEST_F(SdmaPacket, ConditionalAlsoPassesOverDwordsThatComeLater) {
    rig.submit({header(SDMA_OP_COND_EXE), low32(kKernelVa), high32(kKernelVa), 1, 4});
    EXPECT_EQ(rig.run(), StepResult::Idle);
    const Dwords late = fence(kKernelVa + 8, 1);
    rig.submit({late[0], late[1]});
    rig.run();
    rig.submit(Dwords{late[2], late[3]} + fence(kKernelVa + 16, 2));
    rig.run();
    EXPECT_EQ(kernel_word(8), 0u);
    EXPECT_EQ(kernel_word(16), 2u);
}

TEST_F(SdmaPacket, AtomicAdd64IsTheSignalDecrement) {
    rig.put_user<std::uint64_t>(kData, 1);
    rig.submit_user(atomic(SDMA_ATOMIC_ADD_64, kData, ~0ull));
    rig.run();
    EXPECT_EQ(rig.get_user<std::uint64_t>(kData), 0u);
}

TEST_F(SdmaPacket, AnUnknownAtomicIsABadPacket) {
    rig.submit_user(atomic(0x3e, kData, 1));
    rig.run();
    EXPECT_EQ(state().bad_packets, 1u);
}

TEST_F(SdmaPacket, ACompareSwapLoopWaitsForItsCompareValue) {
    rig.put_user<std::uint64_t>(kData, 7);
    rig.submit_user(atomic(TC_OP_CMPSWAP_64, kData, 0x100, 8, 1) + fence(kData + 16, 1));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_FALSE(rig.engine->has_work());
    rig.put_user<std::uint64_t>(kData, 8);
    EXPECT_TRUE(rig.engine->has_work());
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.get_user<std::uint64_t>(kData), 0x100u);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 16), 1u);
}

TEST_F(SdmaPacket, SemaphoresSignalAndWait) {
    const auto semaphore = [](std::uint32_t flags) {
        return Dwords{header(SDMA_OP_SEM) | flags, low32(kKernelVa), high32(kKernelVa)};
    };
    rig.submit(semaphore(0) + fence(kKernelVa + 8, 1));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_FALSE(rig.engine->has_work());
    rig.mem.put<std::uint64_t>(kKernelData, 2);
    EXPECT_TRUE(rig.engine->has_work());
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelData), 1u);
    rig.submit(semaphore(HW_PREP(SDMA_SEM, SIGNAL, 1)));
    rig.run();
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelData), 2u);
    rig.submit(semaphore(HW_PREP(SDMA_SEM, SIGNAL, 1) | HW_PREP(SDMA_SEM, WRITE_ONE, 1)));
    rig.run();
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelData), 1u);
}

TEST_F(SdmaPacket, TimestampsAreTheGpuClock) {
    rig.clock.advance(std::chrono::seconds(1));
    const auto timestamp = [](std::uint32_t sub_op, std::uint64_t value) {
        return Dwords{header(SDMA_OP_TIMESTAMP, sub_op), low32(value), high32(value)};
    };
    rig.submit(timestamp(SDMA_SUB_OP_TIMESTAMP_GET_GLOBAL, kKernelVa));
    rig.run();
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelData), 27'000'000u);
    rig.submit(timestamp(SDMA_SUB_OP_LINEAR, 1000));
    rig.run();
    rig.clock.advance(std::chrono::microseconds(1));
    rig.submit(timestamp(SDMA_SUB_OP_TIMESTAMP_GET, kKernelVa));
    rig.run();
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelData), 1027u);
}

TEST_F(SdmaPacket, PreExeAndDummyTrapDoNothing) {
    rig.submit(Dwords{header(SDMA_OP_PRE_EXE), 3, header(SDMA_OP_DUMMY_TRAP), 0} +
               fence(kKernelVa, 1));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(kernel_word(), 1u);
    EXPECT_TRUE(rig.interrupts.empty());
}

TEST_F(SdmaPacket, IndirectRunsAnIbInTheVmidItNames) {
    const Dwords ib = fence(kData + 0x100, 0x42) + trap(1);
    for (std::size_t i = 0; i < ib.size(); ++i) rig.put_user(kData + 4 * i, ib[i]);
    rig.submit(indirect(kData, static_cast<std::uint32_t>(ib.size()), raw(kUserVmid)) +
               fence(kKernelVa, 1));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 0x100), 0x42u);
    EXPECT_EQ(kernel_word(), 1u);
    ASSERT_EQ(rig.interrupts.size(), 1u);
    EXPECT_EQ(rig.interrupts[0].vmid, raw(kUserVmid));
}

TEST_F(SdmaPacket, AUserQueueCannotNameAnotherVmid) {
    rig.mem.put(kKernelData + 0x20, fence(kKernelVa, 1)[0]);
    rig.submit_user(indirect(kKernelVa + 0x20, 4, 0));
    rig.run();
    ASSERT_EQ(rig.faults.size(), 1u);
    EXPECT_EQ(rig.faults[0].vmid, kUserVmid);
    EXPECT_EQ(rig.faults[0].pasid, kUserPasid);
}

TEST_F(SdmaPacket, IbsNestTwoDeepAndNoDeeper) {
    const auto store_ib = [&](std::uint64_t va, const Dwords& ib) {
        for (std::size_t i = 0; i < ib.size(); ++i) rig.put_user(va + 4 * i, ib[i]);
    };
    store_ib(kData + 0x200, fence(kData + 0x800, 1));
    store_ib(kData + 0x100, indirect(kData + 0x200, 4) + fence(kData + 0x804, 2));
    rig.submit_user(indirect(kData + 0x100, 10) + fence(kData + 0x808, 3));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 0x800), 1u);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 0x804), 2u);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 0x808), 3u);
    store_ib(kData + 0x200, indirect(kData + 0x100, 10));
    rig.submit_user(indirect(kData + 0x100, 10));
    rig.run();
    EXPECT_EQ(state().bad_packets, 1u) << "an IB that calls itself ends";
}

TEST_F(SdmaPacket, AnIbThatEndsInsideAPacketIsBad) {
    const Dwords ib = fence(kData + 0x100, 1);
    for (std::size_t i = 0; i < ib.size(); ++i) rig.put_user(kData + 4 * i, ib[i]);
    rig.submit_user(indirect(kData, 3));
    rig.run();
    EXPECT_EQ(state().bad_packets, 1u);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 0x100), 0u);
}

TEST_F(SdmaPacket, UnknownOpcodesAndSubOpsStopTheirQueueOnly) {
    rig.submit_user(Dwords{header(0x7f)} + fence(kData, 1));
    rig.submit(Dwords{header(SDMA_OP_COPY, 9)} + fence(kKernelVa, 1));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(state().bad_packets, 2u);
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData), 0u);
    ASSERT_TRUE(rig.map_user(1));
    rig.submit_user(fence(kData + 4, 1), 1);
    rig.run();
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 4), 1u);
    EXPECT_FALSE(rig.engine->has_work());
}

}  // namespace
}  // namespace vgpu::softgpu::sdma
