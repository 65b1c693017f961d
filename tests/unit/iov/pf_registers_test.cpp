// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/pf_registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/vf_page_table.h"
#include "tests/support/virtual_clock.h"
#include "tests/unit/iov/fake_vf_control.h"

namespace vgpu::softgpu::iov {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PfRegistersTest : public ::testing::Test {
protected:
    void write(std::uint32_t number, std::uint32_t value) {
        registers.mmio_write(RegisterIndex{number}, value, regs::Gate::Open);
    }
    std::uint32_t read(std::uint32_t number) { return registers.mmio_read(RegisterIndex{number}); }
    static std::uint32_t bank(unsigned vf, hw_reg number) {
        return static_cast<std::uint32_t>(number) + vf * HW_VGPU_BANK_STRIDE;
    }

    std::unique_ptr<mem::DeviceVram> vram = *mem::DeviceVram::create(64_MiB);
    mem::SystemMemory bus;
    FakePanels vf_control;
    VirtualClock clock;
    BulkOps ops{*vram, bus, vf_control.list};
    std::vector<std::uint64_t> log_addresses;
    RunLog log{[this](Iova at, std::span<const std::byte>) {
        log_addresses.push_back(raw(at));
        return true;
    }};
    regs::RegisterFile registers{regs::Role::Pf};
    std::uint32_t wake_mask = 0;
    std::vector<SwitchMode> modes;
    PfRegisters pf{{64_MiB, 32_MiB, 8, SwitchMode::TrueCopy},
                   registers,
                   vf_control.list,
                   ops,
                   log,
                   clock,
                   {[this](std::uint32_t mask) { wake_mask = mask; },
                    [this](SwitchMode mode) { modes.push_back(mode); }}};
};

TEST_F(PfRegistersTest, DescribesTheDevice) {
    EXPECT_EQ(read(REG_VGPU_TOTAL_VFS), 4u);
    EXPECT_EQ(read(REG_VGPU_VRAM_SIZE_MB), 64u);
    EXPECT_EQ(read(REG_VGPU_APERTURE_SIZE_MB), 32u);
    EXPECT_EQ(read(REG_VGPU_CU_COUNT), 8u);
    EXPECT_EQ(read(REG_VGPU_DOORBELL_PAGES), DOORBELL_PAGES);
    EXPECT_EQ(read(REG_VGPU_SWITCH_MODE), 1u);
    EXPECT_EQ(read(REG_NBIO_RCC_IOV_FUNC_IDENTIFIER), 0x80000000u);
}

TEST_F(PfRegistersTest, WritingTheHighHalfCommitsATable) {
    write(bank(2, REG_VGPU_VF0_FB_SIZE_MB), 16);
    write(bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_LO), 0x5000 | VF_PAGE_TABLE_VALID);
    EXPECT_THAT(vf_control.calls, IsEmpty());
    write(bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_HI), 1);
    EXPECT_THAT(vf_control.calls, ElementsAre("commit 2 0x100005000 16777216"));
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_LO)), 0x5001u);
}

TEST_F(PfRegistersTest, ARefusedTableReadsBackInvalid) {
    vf_control.refuses_tables = true;
    write(bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_LO), 0x5000 | VF_PAGE_TABLE_VALID);
    write(bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_HI), 0);
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_LO)), 0x5000u);
}

TEST_F(PfRegistersTest, AnInvalidRootReleasesTheVram) {
    write(bank(1, REG_VGPU_VF0_FB_TABLE_ROOT_LO), 0);
    write(bank(1, REG_VGPU_VF0_FB_TABLE_ROOT_HI), 0);
    EXPECT_THAT(vf_control.calls, ElementsAre("release 1"));
}

TEST_F(PfRegistersTest, BankRegistersReachTheirVf) {
    write(bank(3, REG_VGPU_VF0_DOORBELLS), 0x00100002);
    write(bank(3, REG_VGPU_VF0_CU_MASK_LO), 0xf0);
    write(bank(3, REG_VGPU_VF0_CU_MASK_HI), 0x1);
    write(bank(3, REG_VGPU_VF0_QUANTUM_US), 6000);
    write(bank(3, REG_VGPU_VF0_RESET), 1);
    write(bank(3, REG_VGPU_VF0_RESET), 2);
    EXPECT_THAT(vf_control.calls, ElementsAre("doorbells 3 2+16", "cus 3 0xf0", "cus 3 0x1000000f0",
                                              "quantum 3 6000", "flr 3", "ack 3"));
    EXPECT_EQ(read(bank(3, REG_VGPU_VF0_QUANTUM_US)), 6000u);
    EXPECT_EQ(read(bank(3, REG_VGPU_VF0_RESET)), 3u);
    EXPECT_EQ(read(bank(3, REG_VGPU_VF0_STATUS)), 0x13u);
}

TEST_F(PfRegistersTest, GatesShowWhatTheDeviceMadeOfThem) {
    write(bank(3, REG_VGPU_VF0_GATES), 7);
    EXPECT_EQ(read(bank(3, REG_VGPU_VF0_GATES)), 7u);
    vf_control.gate_values[VfId{3}] = 1;  // the client reset the function
    EXPECT_EQ(read(bank(3, REG_VGPU_VF0_GATES)), 1u);
}

TEST_F(PfRegistersTest, BanksOfThePfAndOfMissingVfsDoNothing) {
    for (const unsigned vf : {0u, 5u, 16u}) {
        write(bank(vf, REG_VGPU_VF0_RESET), 1);
        write(bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_HI), 0);
    }
    EXPECT_THAT(vf_control.calls, IsEmpty());
}

TEST_F(PfRegistersTest, WideCountersLatchTheirHighHalf) {
    vf_control.counters.run_ns = 0x1'0000'0002ull;
    EXPECT_EQ(read(bank(1, REG_VGPU_VF0_RUN_NS_LO)), 2u);
    vf_control.counters.run_ns = 0x9'0000'0000ull;
    EXPECT_EQ(read(bank(1, REG_VGPU_VF0_RUN_NS_HI)), 1u);
    vf_control.counters.wave_instructions = 0x3'0000'0004ull;
    EXPECT_EQ(read(bank(1, REG_VGPU_VF0_WAVE_INSTR_LO)), 4u);
    EXPECT_EQ(read(bank(1, REG_VGPU_VF0_WAVE_INSTR_HI)), 3u);
}

TEST_F(PfRegistersTest, CountersAreThoseOfTheVf) {
    vf_control.counters.switches = 1;
    vf_control.counters.doorbells_latched = 2;
    vf_control.counters.faults = 3;
    vf_control.counters.bad_packets = 4;
    vf_control.counters.bad_accesses = 5;
    vf_control.counters.illegal_instructions = 6;
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_SWITCHES)), 1u);
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_DOORBELLS_LATCHED)), 2u);
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_FAULTS)), 3u);
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_BAD_PACKETS)), 4u);
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_BAD_ACCESSES)), 5u);
    EXPECT_EQ(read(bank(2, REG_VGPU_VF0_ILLEGAL_INSTR)), 6u);
}

TEST_F(PfRegistersTest, AnOperationIsBusyUntilTheOpThreadHasDoneIt) {
    write(REG_VGPU_OP_DST_LO, 20u << 20);
    write(REG_VGPU_OP_SIZE_LO, 4096);
    std::uint32_t value = 0x12345678;
    ASSERT_TRUE(vram->write(DeviceOffset{20u << 20}, bytes_of(value)));
    write(REG_VGPU_OP_COMMAND, VGPU_OP_SCRUB_VRAM);
    EXPECT_EQ(read(REG_VGPU_OP_STATUS), static_cast<std::uint32_t>(VGPU_OP_BUSY));
    ops.run_pending();
    EXPECT_EQ(read(REG_VGPU_OP_STATUS), static_cast<std::uint32_t>(VGPU_OP_DONE));
    ASSERT_TRUE(vram->read(DeviceOffset{20u << 20}, bytes_of(value)));
    EXPECT_EQ(value, 0u);
}

TEST_F(PfRegistersTest, SaveShowsTheLengthOfTheState) {
    vf_control.state.assign(100, std::byte{1});
    write(REG_VGPU_OP_SIZE_LO, 50);
    write(REG_VGPU_OP_COMMAND, VGPU_OP_SAVE_STATE | 1u << 8);
    ops.run_pending();
    EXPECT_EQ(read(REG_VGPU_OP_STATUS), static_cast<std::uint32_t>(VGPU_OP_REFUSED));
}

TEST_F(PfRegistersTest, LogSizeStartsTheLog) {
    write(REG_VGPU_LOG_BASE_LO, 0x10000);
    write(REG_VGPU_LOG_BASE_HI, 0x2);
    write(REG_VGPU_LOG_SIZE, 64);
    log.append({});
    EXPECT_EQ(log_addresses.front(), 0x2'0001'0000ull);
    EXPECT_EQ(read(REG_VGPU_LOG_WPTR), 1u);
    write(REG_VGPU_LOG_SIZE, 64);
    EXPECT_EQ(read(REG_VGPU_LOG_WPTR), 0u);
}

TEST_F(PfRegistersTest, TimeIsReadInTwoHalvesOfOneInstant) {
    clock.advance(std::chrono::seconds(10));
    const std::uint32_t low = read(REG_VGPU_TIME_NS_LO);
    clock.advance(std::chrono::seconds(10));
    EXPECT_EQ(join(low, read(REG_VGPU_TIME_NS_HI)), 10'000'000'000ull);
}

TEST_F(PfRegistersTest, SwitchModeAndWakeMaskGoToTheDevice) {
    write(REG_VGPU_SWITCH_MODE, 0);
    write(REG_VGPU_SWITCH_MODE, 1);
    write(REG_VGPU_WAKE_ENABLE, 0xf);
    EXPECT_THAT(modes, ElementsAre(SwitchMode::Pointer, SwitchMode::TrueCopy));
    EXPECT_EQ(wake_mask, 0xfu);
}

TEST_F(PfRegistersTest, TheMailboxIndexSelectsWhoseBoxIsSeen) {
    write(REG_NBIO_MAILBOX_INDEX, 2);
    EXPECT_EQ(read(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0x200000u + REG_NBIO_MAILBOX_MSGBUF_RCV_DW0);
    write(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, 9);
    EXPECT_THAT(vf_control.mailbox, ElementsAre("2 0xe56 9"));
}

TEST_F(PfRegistersTest, AnIndexWithoutVfShowsAnEmptyBox) {
    for (const std::uint32_t index : {0u, 5u, 255u}) {
        write(REG_NBIO_MAILBOX_INDEX, index);
        EXPECT_EQ(read(REG_NBIO_MAILBOX_CONTROL), 0u);
        write(REG_NBIO_MAILBOX_CONTROL, 1);
    }
    EXPECT_THAT(vf_control.mailbox, IsEmpty());
}

}  // namespace
}  // namespace vgpu::softgpu::iov
