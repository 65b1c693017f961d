// SPDX-License-Identifier: MIT
//
// The video blocks as part of a VF, reached through its sockets: gates, latched doorbells, world
// switches in both modes, FLR, saved state.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "tests/unit/gpu/gpu_rig.h"
#include "tests/unit/video/video_rig.h"

namespace vgpu::softgpu::video::test {
namespace {

using softgpu::mem::kFbBase;
using softgpu::test::eventually;
using softgpu::test::GpuRig;
using softgpu::test::PfClient;
using softgpu::test::VfClient;

constexpr std::uint32_t kMegabytes = 16;
constexpr std::uint64_t kFirstVram = 32u << 20;
constexpr std::uint64_t kVceRing = 0x140000;  // VRAM offset, as driver_list() has it

class VideoVfTest : public GpuRig, public ::testing::WithParamInterface<iov::SwitchMode> {
protected:
    VideoVfTest() : GpuRig(GetParam()), driver(pf()), guest(vf(1)) {
        driver->provision(1, kFirstVram, kMegabytes);
    }

    std::uint32_t hand_over(const Dwords& table) {
        guest->write(VGPU_BAR_VRAM, kTable, std::as_bytes(std::span(table)));
        guest->set_reg(REG_VCE_VCE_MMSCH_VF_CTX_ADDR_LO, low32(kFbBase + kTable));
        guest->set_reg(REG_VCE_VCE_MMSCH_VF_CTX_ADDR_HI, high32(kFbBase + kTable));
        guest->set_reg(REG_VCE_VCE_MMSCH_VF_CTX_SIZE, static_cast<std::uint32_t>(table.size()));
        guest->set_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP, 0);
        guest->set_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, MMSCH_HOST_INIT);
        return guest->reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP);
    }
    void bring_up() {
        EXPECT_EQ(hand_over(table_of(driver_list(Encoder::Uvd), driver_list(Encoder::Vce))),
                  MMSCH_RESPONSE_DONE);
    }
    /// Fences 1 to `count`, from the start of the ring.
    void submit_fences(std::uint32_t count) {
        Dwords packets;
        for (std::uint32_t i = 1; i <= count; ++i) packets = packets + fence(kFbBase + kFence, i);
        guest->write(VGPU_BAR_VRAM, kVceRing, std::as_bytes(std::span(packets)));
        ring(static_cast<std::uint32_t>(packets.size()));
    }
    /// Encoder doorbells have 32 bits.
    void ring(std::uint32_t write_pointer) {
        guest->put(VGPU_BAR_DOORBELL, DOORBELL_VCE * 4ull, write_pointer);
    }
    std::uint32_t last_fence() { return guest->vram<std::uint32_t>(kFence); }
    std::uint32_t switch_to(unsigned next) {
        const std::uint32_t status = driver->command(GPUIOV_CMD_CONTEXT_SWITCH, current_, next);
        current_ = next;
        return status;
    }

    std::unique_ptr<PfClient> driver;
    std::unique_ptr<VfClient> guest;

private:
    unsigned current_ = 0;
};

TEST_P(VideoVfTest, ADoorbellOfAnInactiveVfRunsWhenItIsBack) {
    bring_up();
    submit_fences(100);
    EXPECT_EQ(last_fence(), 0u);
    EXPECT_EQ(switch_to(1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(eventually([&] { return last_fence() == 100; }));
    EXPECT_EQ(switch_to(2), GPUIOV_STATUS_DONE);
    EXPECT_EQ(guest->reg(REG_VCE_VCE_RB_RPTR), 600u) << "read while the VF is inactive";
    EXPECT_EQ(guest->reg(REG_VCE_VCE_STATUS) & 2u, 2u);
}

TEST_P(VideoVfTest, ADoorbellBeforeTheRingIsOnIsIgnored) {
    EXPECT_EQ(switch_to(1), GPUIOV_STATUS_DONE);
    ring(64);
    bring_up();
    EXPECT_EQ(guest->reg(REG_VCE_VCE_RB_WPTR), 0u);
    submit_fences(2);
    EXPECT_TRUE(eventually([&] { return last_fence() == 2; }));
}

TEST_P(VideoVfTest, ATableIsRefusedWhileTheWriteGateIsShut) {
    driver->set_bank(1, REG_VGPU_VF0_GATES,
                     HW_PREP(VGPU_GATES, FB_EN, 1) | HW_PREP(VGPU_GATES, DOORBELL_EN, 1));
    EXPECT_EQ(hand_over(table_of({}, driver_list(Encoder::Vce))), MMSCH_RESPONSE_REFUSED);
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_BAD_PACKETS), 1u);
}

TEST_P(VideoVfTest, RingRegistersAreNotTheGuestsToWrite) {
    bring_up();
    guest->set_reg(REG_VCE_VCE_RB_BASE_LO, 0);
    guest->set_reg(REG_VCE_VCE_RB_WPTR, 64);
    EXPECT_EQ(guest->reg(REG_VCE_VCE_RB_BASE_LO), low32(kFbBase + kVceRing));
    EXPECT_EQ(guest->reg(REG_VCE_VCE_RB_WPTR), 0u);
}

TEST_P(VideoVfTest, AnFlrTurnsTheRingsOff) {
    bring_up();
    submit_fences(10);
    driver->flr(1);
    EXPECT_EQ(HW_GET(VGPU_STATUS, HAS_WORK, driver->bank(1, REG_VGPU_VF0_STATUS)), 0u);
    EXPECT_EQ(guest->reg(REG_VCE_VCE_STATUS), 0u);
    EXPECT_EQ(switch_to(1), GPUIOV_STATUS_DONE);
    bring_up();
    submit_fences(3);
    EXPECT_TRUE(eventually([&] { return last_fence() == 3; }));
}

TEST_P(VideoVfTest, SavedStateContinuesAfterALoad) {
    constexpr std::uint64_t kAddress = 0x1000000;
    constexpr std::uint64_t kBytes = 16u << 20;
    const OwnedFd memory(memfd_create("state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(memory.get(), kBytes), 0);
    ASSERT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    driver->map_dma(kAddress, kBytes, memory.get());
    bring_up();
    submit_fences(7);
    EXPECT_EQ(driver->operation(VGPU_OP_SAVE_STATE, 1, 0, kAddress, kBytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    const std::uint64_t bytes = driver->reg(REG_VGPU_OP_SIZE_LO);
    EXPECT_EQ(driver->operation(VGPU_OP_SCRUB_STATE, 1, 0, 0, 0),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_EQ(guest->reg(REG_VCE_VCE_RB_SIZE), 0u);
    EXPECT_EQ(driver->operation(VGPU_OP_LOAD_STATE, 1, kAddress, 0, bytes),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_EQ(switch_to(1), GPUIOV_STATUS_DONE);
    EXPECT_TRUE(eventually([&] { return last_fence() == 7; }));
}

std::string mode_name(const ::testing::TestParamInfo<iov::SwitchMode>& mode) {
    return mode.param == iov::SwitchMode::TrueCopy ? "TrueCopy" : "Pointer";
}
INSTANTIATE_TEST_SUITE_P(Modes, VideoVfTest,
                         ::testing::Values(iov::SwitchMode::Pointer, iov::SwitchMode::TrueCopy),
                         mode_name);

}  // namespace
}  // namespace vgpu::softgpu::video::test
