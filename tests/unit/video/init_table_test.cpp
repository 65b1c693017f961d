// SPDX-License-Identifier: MIT
//
// The MMSCH and its init table: what a driver writes brings up the rings, anything else gets a
// response that is no success and leaves the encoder off.
#include "pf-driver/softgpu/video/init_table.h"

#include <gtest/gtest.h>

#include "tests/unit/video/video_rig.h"

namespace vgpu::softgpu::video::test {
namespace {

using softgpu::mem::kFbBase;

struct InitTable : testing::Test {
    VideoRig rig;

    /// Hands over a table that must fail; the VCE stays off and the mistake is counted.
    void expect_refusal(const Dwords& table, mmsch_response response) {
        expect_refusal(table, static_cast<std::uint32_t>(table.size()), response);
    }
    void expect_refusal(const Dwords& table, std::uint32_t dwords, mmsch_response response) {
        const std::uint64_t before = rig.engine->state().bad_packets;
        const std::uint32_t answer = rig.hand_over(table, dwords);
        EXPECT_EQ(answer, response);
        EXPECT_NE(answer & MMSCH_RESPONSE_DONE, MMSCH_RESPONSE_DONE)
            << "a driver takes it for success";
        EXPECT_EQ(rig.ring(Encoder::Vce).is_on, 0u);
        EXPECT_EQ(rig.engine->state().bad_packets, before + 1);
    }
    static Dwords header(std::uint32_t version, std::uint32_t dwords, std::uint32_t offset,
                         std::uint32_t size) {
        return Dwords{version, dwords, 0, 0, offset, size, 0, 0} + driver_list(Encoder::Vce);
    }
};

TEST_F(InitTable, OfTheDriverStartsBothRings) {
    rig.bring_up();
    for (const Encoder encoder : kEncoders) {
        EXPECT_EQ(rig.ring(encoder).is_on, 1u);
        EXPECT_EQ(rig.ring(encoder).dwords, kRingDwords);
        EXPECT_EQ(rig.ring(encoder).read_pointer, 0u);
    }
    EXPECT_EQ(rig.ring(Encoder::Uvd).base, kFbBase + 0x130000);
    EXPECT_EQ(rig.ring(Encoder::Vce).base, kFbBase + 0x140000);
    EXPECT_EQ(rig.engine->state().ring_starts, 3u);
    EXPECT_EQ(rig.engine->state().bad_packets, 0u);
}

TEST_F(InitTable, MayHoldTheVceListBeforeTheUvdList) {
    const Dwords vce = driver_list(Encoder::Vce);
    const Dwords uvd = driver_list(Encoder::Uvd);
    const auto vce_dwords = static_cast<std::uint32_t>(vce.size());
    const Dwords head{MMSCH_VERSION,
                      8,
                      0,
                      0,
                      8,
                      vce_dwords,
                      8 + vce_dwords,
                      static_cast<std::uint32_t>(uvd.size())};
    EXPECT_EQ(rig.hand_over(head + vce + uvd), MMSCH_RESPONSE_DONE);
    EXPECT_EQ(rig.ring(Encoder::Vce).is_on, 1u);
    EXPECT_EQ(rig.ring(Encoder::Uvd).is_on, 1u);
}

TEST_F(InitTable, StatusShowsFirmwareOnlyWhileTheVcpuRuns) {
    EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_STATUS) & 2, 0u);
    rig.bring_up();
    EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_STATUS), 0xfffffffeu);
    EXPECT_EQ(rig.memory.read_reg(REG_UVD_UVD_STATUS), 2u);
    rig.memory.write_reg(REG_UVD_UVD_SOFT_RESET, 8);
    EXPECT_EQ(rig.memory.read_reg(REG_UVD_UVD_STATUS), 0u);
}

TEST_F(InitTable, IsRefusedWhileTheGateIsShut) {
    rig.is_gate_open = false;
    expect_refusal(table_of({}, driver_list(Encoder::Vce)), MMSCH_RESPONSE_REFUSED);
    EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_RB_SIZE), 0u);
}

TEST_F(InitTable, OfABadSizeIsABadRequest) {
    const Dwords table = table_of({}, driver_list(Encoder::Vce));
    for (const std::uint32_t dwords : {0u, 7u, MMSCH_MAX_TABLE_DWORDS + 1, 0x80000000u, ~0u})
        expect_refusal(table, dwords, MMSCH_RESPONSE_BAD_REQUEST);
}

TEST_F(InitTable, OfAnotherVmidOrAnUnknownRequestIsABadRequest) {
    const Dwords table = table_of({}, driver_list(Encoder::Vce));
    EXPECT_EQ(rig.hand_over(table, 0), MMSCH_RESPONSE_BAD_REQUEST);
    rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_SIZE, static_cast<std::uint32_t>(table.size()));
    rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_VMID, 3);
    rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, MMSCH_HOST_INIT);
    EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP), MMSCH_RESPONSE_BAD_REQUEST);
    rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_VMID, 0);
    rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, 0x10000002);
    EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP), MMSCH_RESPONSE_BAD_REQUEST);
}

TEST_F(InitTable, OnNoMemoryIsBadMemoryAndLeavesNoFaultBehind) {
    rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_SIZE, 64);
    for (const std::uint64_t address :
         {std::uint64_t{0x1000}, kFbBase + softgpu::test::kVfBytes.count - 16, ~std::uint64_t{0}}) {
        rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_ADDR_LO, low32(address));
        rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_ADDR_HI, high32(address));
        rig.memory.write_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, MMSCH_HOST_INIT);
        EXPECT_EQ(rig.memory.read_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP),
                  MMSCH_RESPONSE_BAD_MEMORY);
        EXPECT_FALSE((*rig.ports)(Vmid{0}).has_fault());
    }
}

TEST_F(InitTable, WithABadHeaderIsRefused) {
    const auto size = static_cast<std::uint32_t>(driver_list(Encoder::Vce).size());
    expect_refusal(header(0, 8, 8, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(2, 8, 8, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 7, 8, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, ~0u, 8, size), MMSCH_RESPONSE_BAD_HEADER);
}

TEST_F(InitTable, WithAListThatLeavesItIsRefused) {
    const auto size = static_cast<std::uint32_t>(driver_list(Encoder::Vce).size());
    expect_refusal(header(1, 8, 4, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, 0, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, 8, 0), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, 8, size + 1), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, 9, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, 8, ~0u), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, ~0u, size), MMSCH_RESPONSE_BAD_HEADER);
    expect_refusal(header(1, 8, ~0u - 3, 8), MMSCH_RESPONSE_BAD_HEADER);
}

TEST_F(InitTable, EndsAtAnUnknownOrTruncatedCommand) {
    for (const std::uint32_t code : {1u, 4u, 5u, 7u, 9u, 0xeu})
        expect_refusal(table_of({}, Dwords{code << 28 | REG_VCE_VCE_STATUS, 0, 0, 0xfu << 28}),
                       MMSCH_RESPONSE_BAD_COMMAND);
    const Dwords write = direct_write(REG_VCE_VCE_RB_SIZE, 64);
    const Dwords change = modify(REG_VCE_VCE_STATUS, 0, 0);
    expect_refusal(table_of({}, {write[0]}), MMSCH_RESPONSE_BAD_COMMAND);
    expect_refusal(table_of({}, {change[0], change[1]}), MMSCH_RESPONSE_BAD_COMMAND);
    expect_refusal(table_of({}, write), MMSCH_RESPONSE_BAD_COMMAND);
}

TEST_F(InitTable, ReachesNoRegisterOutsideItsEncoder) {
    rig.memory.write_reg(REG_GC_SCRATCH_REG0, 0x1234);
    for (const std::uint32_t reg :
         {std::uint32_t{REG_GC_SCRATCH_REG0}, std::uint32_t{REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST},
          std::uint32_t{REG_UVD_UVD_RB_SIZE}, std::uint32_t{REG_MP0_MP0_SMN_C2PMSG_101}, 0u,
          0xfffffffu})
        for (const Dwords& command :
             {direct_write(reg, MMSCH_HOST_INIT), modify(reg, 0, 1), poll(reg, 0, 0)})
            expect_refusal(table_of({}, command + end_of_table()), MMSCH_RESPONSE_BAD_REGISTER);
    EXPECT_EQ(rig.memory.read_reg(REG_GC_SCRATCH_REG0), 0x1234u);
}

TEST_F(InitTable, DoesNotWaitForWhatNeverComesTrue) {
    expect_refusal(table_of({}, poll(REG_VCE_VCE_STATUS, 2, 2) + end_of_table()),
                   MMSCH_RESPONSE_NOT_READY);
}

TEST_F(InitTable, WithAnImpossibleRingLeavesItOff) {
    for (const std::uint32_t dwords : {0u, VIDEO_MAX_RING_DWORDS + 1, ~0u})
        expect_refusal(table_of({}, direct_write(REG_VCE_VCE_RB_SIZE, dwords) + end_of_table()),
                       MMSCH_RESPONSE_BAD_RING);
}

TEST_F(InitTable, SkipsIndirectWrites) {
    const Dwords indirect{static_cast<std::uint32_t>(MMSCH_COMMAND_INDIRECT_WRITE) << 28 | 0x5, 1};
    EXPECT_EQ(rig.hand_over(table_of({}, indirect + driver_list(Encoder::Vce))),
              MMSCH_RESPONSE_DONE);
    EXPECT_EQ(rig.ring(Encoder::Vce).is_on, 1u);
}

TEST_F(InitTable, ThatFailsForOneEncoderStillStartsTheOther) {
    const Dwords bad = poll(REG_UVD_UVD_STATUS, 2, 2) + end_of_table();
    EXPECT_EQ(rig.hand_over(table_of(bad, driver_list(Encoder::Vce))), MMSCH_RESPONSE_NOT_READY);
    EXPECT_EQ(rig.ring(Encoder::Uvd).is_on, 0u);
    EXPECT_EQ(rig.ring(Encoder::Vce).is_on, 1u);
}

TEST_F(InitTable, ThatFailsTurnsARunningRingOff) {
    rig.bring_up();
    EXPECT_EQ(rig.hand_over(table_of({}, direct_write(0, 0))), MMSCH_RESPONSE_BAD_REGISTER);
    EXPECT_EQ(rig.ring(Encoder::Vce).is_on, 0u);
    EXPECT_EQ(rig.ring(Encoder::Uvd).is_on, 1u);
}

}  // namespace
}  // namespace vgpu::softgpu::video::test
