// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/vsec.h"

#include <gtest/gtest.h>

#include "pf-driver/softgpu/base/bits.h"
#include "tests/unit/iov/switch_rig.h"

namespace vgpu::softgpu::iov {
namespace {

constexpr std::uint32_t kSch = GPUIOV_GFX_SCH0;

class VsecTest : public ::testing::Test {
protected:
    template <typename T> T read(std::uint32_t offset) {
        T value{};
        vsec.read(offset, bytes_of(value));
        return value;
    }
    template <typename T> void write(std::uint32_t offset, T value) {
        vsec.write(offset, bytes_of(std::as_const(value)));
    }

    SwitchRig rig;
    int switch_vector = 0;
    int mailbox_vector = 0;
    int resets = 0;
    bool is_resetting = false;
    std::uint32_t busy = 0;
    Vsec vsec{512_MiB,
              rig.machine,
              {[this](gpuiov_vector v) {
                   ++(v == GPUIOV_VECTOR_SWITCH ? switch_vector : mailbox_vector);
               },
               [this] { return busy; }, [this] { ++resets; }, [this] { return is_resetting; }}};
};

TEST_F(VsecTest, PointsToItsSchedulerBlock) {
    EXPECT_EQ(read<std::uint8_t>(GPUIOV_GFX_SCH_OFFSET) * 16u, kSch);
}

TEST_F(VsecTest, ShowsTheVramInUnitsOf16MiB) {
    EXPECT_EQ(read<std::uint16_t>(GPUIOV_TOTAL_FB_AVAILABLE), 32u);
    write<std::uint16_t>(GPUIOV_TOTAL_FB_AVAILABLE, 0);
    write<std::uint16_t>(GPUIOV_TOTAL_FB_CONSUMED, 5);
    EXPECT_EQ(read<std::uint16_t>(GPUIOV_TOTAL_FB_AVAILABLE), 32u);
    EXPECT_EQ(read<std::uint16_t>(GPUIOV_TOTAL_FB_CONSUMED), 5u);
}

TEST_F(VsecTest, ACommandIsOneDwordAndCompletesWithExecuteClearAndStatusDone) {
    write<std::uint32_t>(kSch + GPUIOV_SCH_CMD_CONTROL, GPUIOV_COMMAND(GPUIOV_CMD_LOAD, fcn(2), 0));
    EXPECT_NE(read<std::uint8_t>(kSch + GPUIOV_SCH_CMD_CONTROL) & GPUIOV_CMD_EXECUTE, 0u);
    EXPECT_EQ(read<std::uint8_t>(kSch + GPUIOV_SCH_CMD_STATUS), GPUIOV_STATUS_PENDING);
    rig.machine.process();
    EXPECT_EQ(read<std::uint8_t>(kSch + GPUIOV_SCH_CMD_CONTROL) & GPUIOV_CMD_EXECUTE, 0u);
    EXPECT_EQ(read<std::uint8_t>(kSch + GPUIOV_SCH_CMD_STATUS), GPUIOV_STATUS_DONE);
    EXPECT_EQ(read<std::uint8_t>(kSch + GPUIOV_SCH_FCN_ID), fcn(2));
}

TEST_F(VsecTest, BytewiseCommandsStartWithTheControlByte) {
    write<std::uint8_t>(kSch + GPUIOV_SCH_FCN_ID, static_cast<std::uint8_t>(fcn(3)));
    write<std::uint8_t>(kSch + GPUIOV_SCH_CMD_CONTROL,
                        std::uint8_t{GPUIOV_CMD_LOAD | GPUIOV_CMD_EXECUTE});
    rig.machine.process();
    EXPECT_EQ(rig.machine.view().function, VfId{3});
    write<std::uint8_t>(kSch + GPUIOV_SCH_FCN_ID, static_cast<std::uint8_t>(fcn(1)));
    EXPECT_EQ(rig.wakes, 1);  // an argument alone starts nothing
}

TEST_F(VsecTest, ShowsTheActiveFunctionAndItsState) {
    EXPECT_EQ(read<std::uint32_t>(kSch + GPUIOV_SCH_ACTIVE_FUNCTION_ID), 0u);
    rig.run_vf(3);
    const auto active = read<std::uint32_t>(kSch + GPUIOV_SCH_ACTIVE_FUNCTION_ID);
    EXPECT_EQ(active & 0x1f, 2u);
    EXPECT_EQ(active >> 31, 1u);
    EXPECT_EQ(read<std::uint8_t>(kSch + GPUIOV_SCH_ACTIVE_FUNCTION_STATUS), GPUIOV_FUNCTION_ACTIVE);
}

TEST_F(VsecTest, StatusRegistersAreReadOnly) {
    busy = 5;
    for (const std::uint32_t offset :
         {kSch + GPUIOV_SCH_CMD_STATUS, kSch + GPUIOV_SCH_VM_BUSY_STATUS,
          kSch + GPUIOV_SCH_ACTIVE_FUNCTION_ID, std::uint32_t{GPUIOV_GFX_SCH_OFFSET & ~3u}}) {
        const auto before = read<std::uint32_t>(offset);
        write<std::uint32_t>(offset, ~0u);
        EXPECT_EQ(read<std::uint32_t>(offset), before) << offset;
    }
    EXPECT_EQ(read<std::uint32_t>(kSch + GPUIOV_SCH_VM_BUSY_STATUS), 5u);
}

TEST_F(VsecTest, InterruptStatusStaysUntilOneIsWritten) {
    vsec.interrupt(GPUIOV_INTR_GFX_VM_BUSY | GPUIOV_INTR_GFX_VM_IDLE);
    write<std::uint32_t>(GPUIOV_INTR_STATUS, GPUIOV_INTR_GFX_VM_BUSY);
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_INTR_STATUS), GPUIOV_INTR_GFX_VM_IDLE);
    write<std::uint8_t>(GPUIOV_INTR_STATUS + 3, 0xff);  // bytes are masked too
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_INTR_STATUS), GPUIOV_INTR_GFX_VM_IDLE);
}

TEST_F(VsecTest, OnlyEnabledBitsRaiseTheirVector) {
    vsec.interrupt(GPUIOV_INTR_GFX_VM_BUSY);
    EXPECT_EQ(switch_vector, 0);
    write<std::uint32_t>(GPUIOV_INTR_ENABLE, GPUIOV_INTR_GFX_QUANTUM_EXPIRED | GPUIOV_INTR_VF_FLR);
    vsec.interrupt(GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    vsec.interrupt(GPUIOV_INTR_VF_FLR);
    vsec.interrupt(GPUIOV_INTR_HVVM_MBOX_VALID);
    EXPECT_EQ(switch_vector, 1);
    EXPECT_EQ(mailbox_vector, 1);
}

TEST_F(VsecTest, EnablingAPendingBitRaisesIt) {
    vsec.interrupt(GPUIOV_INTR_HVVM_MBOX_VALID);
    write<std::uint32_t>(GPUIOV_INTR_ENABLE, GPUIOV_INTR_HVVM_MBOX_VALID);
    EXPECT_EQ(mailbox_vector, 1);
    write<std::uint32_t>(GPUIOV_INTR_ENABLE, GPUIOV_INTR_HVVM_MBOX_VALID);
    EXPECT_EQ(mailbox_vector, 1);
}

TEST_F(VsecTest, MailboxBitsArePerVf) {
    vsec.set_mailbox_valid(VfId{1});
    vsec.set_mailbox_valid(VfId{4});
    vsec.set_mailbox_ack(VfId{2});
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_HVVM_MBOX1), 1u << 0 | 1u << 6 | 1u << 3);
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_INTR_STATUS),
              GPUIOV_INTR_HVVM_MBOX_VALID | GPUIOV_INTR_HVVM_MBOX_ACK);
}

TEST_F(VsecTest, AckBitsAreClearedByOneAndValidBitsByTheDeviceAlone) {
    vsec.set_mailbox_valid(VfId{1});
    vsec.set_mailbox_ack(VfId{1});
    write<std::uint32_t>(GPUIOV_HVVM_MBOX1, ~0u);
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_HVVM_MBOX1), 1u);
    vsec.clear_mailbox_valid(VfId{1});
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_HVVM_MBOX1), 0u);
}

TEST_F(VsecTest, FramebufferSlicesAreStorage) {
    write<std::uint32_t>(GPUIOV_VF1_FB + 4, 0x00020004);
    EXPECT_EQ(read<std::uint16_t>(GPUIOV_VF1_FB + 4), 4u);
    EXPECT_EQ(read<std::uint16_t>(GPUIOV_VF1_FB + 6), 2u);
}

TEST_F(VsecTest, ResetControlResetsTheDevice) {
    write<std::uint8_t>(GPUIOV_RESET_CONTROL, 0);
    EXPECT_EQ(resets, 0);
    write<std::uint8_t>(GPUIOV_RESET_CONTROL, GPUIOV_RESET_DEVICE);
    EXPECT_EQ(resets, 1);
    is_resetting = true;
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_RESET_CONTROL), GPUIOV_RESET_DEVICE);
    is_resetting = false;
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_RESET_CONTROL), 0u);
}

TEST_F(VsecTest, AccessesBeyondTheCapabilityDoNothing) {
    write<std::uint64_t>(GPUIOV_VSEC_LENGTH - 4, ~0ull);
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_VSEC_LENGTH), 0u);
    EXPECT_EQ(read<std::uint32_t>(GPUIOV_VSEC_LENGTH - 4), ~0u);
}

}  // namespace
}  // namespace vgpu::softgpu::iov
