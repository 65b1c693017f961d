// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/rlcg.h"

#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::regs {
namespace {

constexpr RegisterIndex kTarget{REG_GC_RLC_CP_SCHEDULERS};
constexpr std::uint32_t kGcWrite = 0;
constexpr std::uint32_t kGcRead = 1;
constexpr std::uint32_t kMmhubWrite = 2;
constexpr std::uint32_t kLegacyWrite = 8;

class RlcgTest : public ::testing::Test {
protected:
    /// One access as the driver makes it; the answer is SCRATCH_REG1.
    std::uint32_t access(std::uint32_t command, RegisterIndex target, std::uint32_t value = 0) {
        mmio(REG_GC_SCRATCH_REG0, value);
        mmio(REG_GC_SCRATCH_REG1, HW_PREP(SCRATCH_REG1, RLCG_COMMAND, command) |
                                      HW_PREP(SCRATCH_REG1, RLCG_OFFSET, raw(target)));
        mmio(REG_GC_RLC_SPARE_INT, 1);
        return file.mmio_read(RegisterIndex{REG_GC_SCRATCH_REG1});
    }
    void mmio(hw_reg number, std::uint32_t value) {
        file.mmio_write(RegisterIndex{static_cast<std::uint32_t>(number)}, value, gate);
    }
    static std::uint32_t error(std::uint32_t answer) {
        return HW_GET(SCRATCH_REG1, RLCG_ERROR, answer);
    }

    RegisterFile file{Role::Vf};
    Gate gate = Gate::Open;
    Rlcg rlcg{file, [this] { return gate; }};
};

TEST_F(RlcgTest, LegacyWriteReachesTheRegisterAndClearsTheOffset) {
    const std::uint32_t answer = access(kLegacyWrite, kTarget, 0xc8);
    EXPECT_EQ(file.read(kTarget), 0xc8u);
    EXPECT_EQ(HW_GET(SCRATCH_REG1, RLCG_OFFSET, answer), 0u);
    EXPECT_EQ(error(answer), 0u);
}

TEST_F(RlcgTest, GcReadPutsTheValueIntoScratch0) {
    file.write(kTarget, 0x1234);
    EXPECT_EQ(error(access(kGcRead, kTarget)), 0u);
    EXPECT_EQ(file.mmio_read(RegisterIndex{REG_GC_SCRATCH_REG0}), 0x1234u);
}

TEST_F(RlcgTest, GcAndMmhubWritesReachTheirRegisters) {
    access(kGcWrite, kTarget, 1);
    access(kMmhubWrite, RegisterIndex{REG_MMHUB_VM_CONTEXT0_CNTL}, 2);
    EXPECT_EQ(file.read(kTarget), 1u);
    EXPECT_EQ(file.read(RegisterIndex{REG_MMHUB_VM_CONTEXT0_CNTL}), 2u);
}

TEST_F(RlcgTest, AnUnknownCommandAnswersTwoAndChangesNothing) {
    for (const std::uint32_t command : {3u, 4u, 5u, 6u, 7u, 9u, 15u})
        EXPECT_EQ(error(access(command, kTarget, 0xff)), 2u) << command;
    EXPECT_EQ(file.read(kTarget), 0u);
    EXPECT_EQ(rlcg.refused(), 7u);
}

TEST_F(RlcgTest, AShutGateAnswersFour) {
    gate = Gate::Shut;
    EXPECT_EQ(error(access(kLegacyWrite, kTarget, 0xff)), 4u);
    EXPECT_EQ(file.read(kTarget), 0u);
}

TEST_F(RlcgTest, OffsetsBeyondTheBarAndThePfRangeAnswerOne) {
    EXPECT_EQ(error(access(kLegacyWrite, RegisterIndex{REG_VGPU_VF0_GATES}, 7)), 1u);
    EXPECT_EQ(error(access(kGcRead, RegisterIndex{0xfffff})), 1u);
}

TEST_F(RlcgTest, CannotBeMadeToCallItself) {
    EXPECT_EQ(error(access(kLegacyWrite, RegisterIndex{REG_GC_RLC_SPARE_INT}, 1)), 1u);
    EXPECT_EQ(error(access(kLegacyWrite, RegisterIndex{REG_GC_SCRATCH_REG1}, 1)), 1u);
}

TEST_F(RlcgTest, AWriteWithoutTheBitDoesNothing) {
    mmio(REG_GC_SCRATCH_REG0, 5);
    mmio(REG_GC_SCRATCH_REG1, HW_PREP(SCRATCH_REG1, RLCG_COMMAND, kLegacyWrite) |
                                  HW_PREP(SCRATCH_REG1, RLCG_OFFSET, raw(kTarget)));
    mmio(REG_GC_RLC_SPARE_INT, 0);
    EXPECT_EQ(file.read(kTarget), 0u);
}

}  // namespace
}  // namespace vgpu::softgpu::regs
