// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/tc_op.h"
#include "tests/unit/sdma/sdma_rig.h"

namespace vgpu::softgpu::sdma {
namespace {

using namespace test;
using softgpu::mem::kFbBase;

constexpr std::uint64_t kData = kUserBase;
constexpr std::uint64_t kKernelData = 0x140000;
constexpr std::uint64_t kKernelVa = kFbBase + kKernelData;

struct SdmaQueue : testing::Test {
    SdmaRig rig;
    std::uint32_t user_word(std::uint64_t offset = 0) const {
        return rig.get_user<std::uint32_t>(kData + offset);
    }
    std::uint32_t kernel_word() const { return rig.mem.get<std::uint32_t>(kKernelData); }
};

TEST_F(SdmaQueue, TheKernelRingReportsItsReadPointerInRegisterAndMemory) {
    rig.enable_kernel_ring();
    rig.submit(fence(kKernelVa, 1));
    rig.run();
    EXPECT_EQ(rig.mem.read_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR), 16u);
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelReport), 16u);
    EXPECT_EQ(rig.mem.read_reg(REG_SDMA0_SDMA0_GFX_RB_WPTR), 16u);
}

TEST_F(SdmaQueue, PacketsWrapAroundTheRingAndPointersStayMonotonic) {
    rig.enable_kernel_ring();
    for (std::uint32_t i = 1; i <= 1000; ++i) {
        rig.submit(fence(kKernelVa, i) + Dwords{header(SDMA_OP_NOP)});
        ASSERT_EQ(rig.run(), StepResult::Idle);
        ASSERT_EQ(kernel_word(), i);
    }
    EXPECT_EQ(rig.mem.get<std::uint64_t>(kKernelReport), 1000u * 20);
}

TEST_F(SdmaQueue, ADoorbellBeforeTheRingIsEnabledCountsForNothing) {
    EXPECT_FALSE(rig.engine->doorbell(DoorbellIndex{DOORBELL_SDMA0}, 0));
    rig.enable_kernel_ring();
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL, 0);
    EXPECT_TRUE(rig.engine->doorbell(DoorbellIndex{DOORBELL_SDMA0}, 64));
    EXPECT_FALSE(rig.engine->has_work());
    rig.enable_kernel_ring();
    EXPECT_FALSE(rig.engine->has_work());
}

TEST_F(SdmaQueue, APartOfAPacketWaitsForTheRest) {
    rig.enable_kernel_ring();
    const Dwords packet = fence(kKernelVa, 5);
    rig.submit({packet[0], packet[1]});
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
    rig.submit({packet[2], packet[3]});
    EXPECT_TRUE(rig.engine->has_work());
    rig.run();
    EXPECT_EQ(kernel_word(), 5u);
}

TEST_F(SdmaQueue, AHaltedEngineDoesNothing) {
    rig.enable_kernel_ring();
    rig.mem.write_reg(REG_SDMA0_SDMA0_F32_CNTL, HW_PREP(SDMA_F32_CNTL, HALT, 1));
    rig.submit(fence(kKernelVa, 1));
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_EQ(rig.engine->step(), StepResult::Idle);
    rig.mem.write_reg(REG_SDMA0_SDMA0_F32_CNTL, 0);
    rig.run();
    EXPECT_EQ(kernel_word(), 1u);
}

TEST_F(SdmaQueue, StatusShowsIdle) {
    rig.enable_kernel_ring();
    EXPECT_EQ(rig.mem.read_reg(REG_SDMA0_SDMA0_STATUS_REG), 0x46dee557u);
    rig.submit(fence(kKernelVa, 1));
    EXPECT_EQ(rig.mem.read_reg(REG_SDMA0_SDMA0_STATUS_REG) & 1u, 0u);
    rig.run();
    EXPECT_EQ(rig.mem.read_reg(REG_SDMA0_SDMA0_STATUS_REG) & 1u, 1u);
}

TEST_F(SdmaQueue, ReenablingAHaltedKernelRingStartsAfresh) {
    rig.enable_kernel_ring();
    rig.submit({header(0xff)});
    rig.run();
    ASSERT_EQ(rig.engine->state().queues[0].is_halted, 1u);
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL, 0);
    rig.enable_kernel_ring();
    rig.submit(fence(kKernelVa, 2));
    rig.run();
    EXPECT_EQ(kernel_word(), 2u);
}

TEST_F(SdmaQueue, APacketInAMovedRingBeginsAtItsStart) {
    constexpr std::uint64_t kOtherRing = 0x108000;
    constexpr std::uint32_t kBytes = 0x20000;
    rig.enable_kernel_ring();
    rig.submit(fill(kFbBase + kUserVram, 1, 2, kBytes));
    ASSERT_EQ(rig.engine->step({0x8000, 16}), StepResult::Progress);
    ASSERT_EQ(rig.kernel_queue().progress, 0x8000u);
    const Dwords other = fill(kFbBase + kUserVram, 2, 2, kBytes);
    for (std::size_t i = 0; i < other.size(); ++i) rig.mem.put(kOtherRing + 4 * i, other[i]);
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_BASE, low32((kFbBase + kOtherRing) >> 8));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.mem.get<std::uint32_t>(kUserVram), 2u);
}

TEST_F(SdmaQueue, APacketAtAReadPointerThatTheDriverWritesBeginsAtItsStart) {
    constexpr std::uint32_t kBytes = 0x20000;
    rig.enable_kernel_ring();
    const Dwords packet = fill(kFbBase + kUserVram, 1, 2, kBytes);
    rig.submit(packet + fill(kFbBase + kUserVram, 2, 2, kBytes));
    ASSERT_EQ(rig.engine->step({0x8000, 16}), StepResult::Progress);
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR, low32(packet.size() * 4));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.mem.get<std::uint32_t>(kUserVram), 2u);
}

TEST_F(SdmaQueue, APacketThatWritesItsRingsWritePointerRunsOnce) {
    rig.enable_kernel_ring();
    const Dwords add = atomic(TC_OP_ADD_32, kKernelVa, 1);
    Dwords write = register_write(REG_SDMA0_SDMA0_GFX_RB_WPTR, 0);
    const std::uint64_t end = (2 * add.size() + write.size()) * 4;
    write.back() = low32(end);
    rig.submit(add + write + add);
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(kernel_word(), 2u);
    EXPECT_EQ(rig.kernel_queue().read_pointer, end);
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
}

TEST_F(SdmaQueue, WithoutDoorbellTheWritePointerIsPolledInMemory) {
    rig.enable_kernel_ring();
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_DOORBELL, 0);
    const std::uint64_t poll = kFbBase + 0x150000;
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_ADDR_LO, low32(poll));
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_ADDR_HI, high32(poll));
    rig.submit(fence(kKernelVa, 3));
    rig.mem.put<std::uint64_t>(0x150000, 16);
    EXPECT_FALSE(rig.engine->has_work());
    rig.mem.write_reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_CNTL,
                      HW_PREP(SDMA_WPTR_POLL_CNTL, F32_POLL, 1));
    EXPECT_TRUE(rig.engine->has_work());
    rig.run();
    EXPECT_EQ(kernel_word(), 3u);
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_TRUE(rig.engine->needs_polling()) << "nothing else reports a write to memory";
}

TEST_F(SdmaQueue, AMappedQueueWithWorkStartsWithoutADoorbell) {
    const Dwords packet = fence(kData, 9);
    for (std::size_t i = 0; i < packet.size(); ++i) rig.put_user(kUserRing + 4 * i, packet[i]);
    ASSERT_TRUE(rig.map_user());
    rig.engine->unmap(SdmaRig::doorbell_of(0));
    rig.put_user<std::uint64_t>(kUserWptr, 16);
    ASSERT_TRUE(rig.engine->map({GpuVa{kFbBase + kUserMqd}, SdmaRig::doorbell_of(0),
                                 GpuVa{kUserWptr}, kUserVmid, kUserPasid}));
    EXPECT_TRUE(rig.engine->has_work());
    rig.run();
    EXPECT_EQ(user_word(), 9u);
    EXPECT_EQ(rig.get_user<std::uint64_t>(kUserReport), 16u);
}

TEST_F(SdmaQueue, TwoUserQueuesFitAndAThirdDoesNot) {
    EXPECT_TRUE(rig.map_user(0));
    EXPECT_TRUE(rig.map_user(0)) << "the same queue again";
    EXPECT_TRUE(rig.map_user(1));
    EXPECT_FALSE(rig.engine->map(
        {GpuVa{kFbBase + 0x130000}, DoorbellIndex{0x2000}, GpuVa{0}, kUserVmid, kUserPasid}));
    EXPECT_TRUE(rig.engine->unmap(SdmaRig::doorbell_of(0)));
    EXPECT_FALSE(rig.engine->unmap(SdmaRig::doorbell_of(0)));
    EXPECT_TRUE(rig.map_user(0));
}

TEST_F(SdmaQueue, AnMqdThatIsNotThereOrIsNonsenseIsRefused) {
    EXPECT_FALSE(
        rig.engine->map({GpuVa{0x1000}, DoorbellIndex{1}, GpuVa{0}, kUserVmid, kUserPasid}));
    rig.mem.put(0x130000, HW_PREP(SDMA_RB_CNTL, RB_SIZE, 63));
    EXPECT_FALSE(rig.engine->map(
        {GpuVa{kFbBase + 0x130000}, DoorbellIndex{1}, GpuVa{0}, kUserVmid, kUserPasid}));
}

TEST_F(SdmaQueue, ADoorbellOfAnUnmappedQueueIsNotOurs) {
    ASSERT_TRUE(rig.map_user());
    rig.engine->unmap(SdmaRig::doorbell_of(0));
    EXPECT_FALSE(rig.engine->doorbell(SdmaRig::doorbell_of(0), 64));
}

TEST_F(SdmaQueue, UnmapWritesPointersBackAndMapGoesOnThere) {
    ASSERT_TRUE(rig.map_user());
    rig.submit_user(fence(kData, 1) + poll_memory(kData + 8, 3, 1) + fence(kData, 2));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_TRUE(rig.engine->unmap(SdmaRig::doorbell_of(0)));
    EXPECT_EQ(rig.mem.get<std::uint32_t>(kUserMqd + 4 * SDMA_MQD_RB_RPTR), 16u);
    EXPECT_EQ(rig.mem.get<std::uint32_t>(kUserMqd + 4 * SDMA_MQD_RB_WPTR), 56u);
    rig.put_user(kData + 8, 1u);
    ASSERT_TRUE(rig.engine->map(
        {GpuVa{kFbBase + kUserMqd}, SdmaRig::doorbell_of(0), GpuVa{0}, kUserVmid, kUserPasid}));
    rig.run();
    EXPECT_EQ(user_word(), 2u);
}

TEST_F(SdmaQueue, PreemptionInsideAnIbRunsNoPacketTwice) {
    ASSERT_TRUE(rig.map_user());
    const Dwords ib = atomic(SDMA_ATOMIC_ADD_64, kData, 1) + poll_memory(kData + 8, 3, 1) +
                      atomic(SDMA_ATOMIC_ADD_64, kData, 1);
    for (std::size_t i = 0; i < ib.size(); ++i) rig.put_user(kData + 0x100 + 4 * i, ib[i]);
    rig.submit_user(indirect(kData + 0x100, static_cast<std::uint32_t>(ib.size())) +
                    fence(kData + 16, 3));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    EXPECT_TRUE(rig.engine->unmap(SdmaRig::doorbell_of(0)));
    rig.put_user(kData + 8, 1u);
    ASSERT_TRUE(rig.engine->map({GpuVa{kFbBase + kUserMqd}, SdmaRig::doorbell_of(0),
                                 GpuVa{kUserWptr}, kUserVmid, kUserPasid}));
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.get_user<std::uint64_t>(kData), 2u);
    EXPECT_EQ(user_word(16), 3u);
}

TEST_F(SdmaQueue, PreemptionInsideACopyGoesOnWhereItStopped) {
    ASSERT_TRUE(rig.map_user());
    rig.submit_user(copy_linear(kData + 0x40000, kData, 0x20000));
    ASSERT_EQ(rig.engine->step({0x8000, 16}), StepResult::Progress);
    EXPECT_TRUE(rig.engine->unmap(SdmaRig::doorbell_of(0)));
    ASSERT_TRUE(rig.engine->map({GpuVa{kFbBase + kUserMqd}, SdmaRig::doorbell_of(0),
                                 GpuVa{kUserWptr}, kUserVmid, kUserPasid}));
    const std::uint64_t before = rig.engine->state().bytes;
    EXPECT_EQ(rig.run(), StepResult::Idle);
    EXPECT_EQ(rig.engine->state().bytes - before, 0x18000u);
}

TEST_F(SdmaQueue, QueuesTakeTurns) {
    ASSERT_TRUE(rig.map_user(0));
    ASSERT_TRUE(rig.map_user(1));
    rig.submit_user(copy_linear(kData + 0x40000, kData, 0x30000), 0);
    rig.submit_user(fence(kData, 1), 1);
    (void)rig.engine->step();
    (void)rig.engine->step();
    EXPECT_EQ(user_word(), 1u) << "a long copy does not hold the other queue";
}

TEST_F(SdmaQueue, APollOnMemoryThatGoesAwayEndsInAFault) {
    ASSERT_TRUE(rig.map_user());
    rig.submit_user(poll_memory(kData, 3, 1));
    EXPECT_EQ(rig.run(), StepResult::Blocked);
    rig.mem.map_page(rig.user_root, kData, 0);
    EXPECT_FALSE(rig.engine->has_work()) << "stale translation";
    rig.mem.invalidate(raw(kUserVmid));
    EXPECT_TRUE(rig.engine->has_work());
    rig.run();
    EXPECT_EQ(rig.faults.size(), 1u);
}

TEST_F(SdmaQueue, ARingOnUnmappedMemoryFaultsItsQueueOnly) {
    ASSERT_TRUE(rig.map_user());
    rig.enable_kernel_ring();
    rig.mem.map_page(rig.user_root, kUserRing, 0);
    rig.mem.invalidate(raw(kUserVmid));
    rig.engine->doorbell(SdmaRig::doorbell_of(0), 64);
    rig.submit(fence(kKernelVa, 1));
    rig.run();
    EXPECT_EQ(rig.faults.size(), 1u);
    EXPECT_EQ(kernel_word(), 1u);
}

}  // namespace
}  // namespace vgpu::softgpu::sdma
