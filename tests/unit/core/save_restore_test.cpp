// SPDX-License-Identifier: MIT
//
// SAVE, RESTORE and DUMP: a VF comes back exactly, and damaged or short streams are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/cp/occupancy.h"
#include "pf-driver/softgpu/isa/wave.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

TEST(Stream, SaveAndRestoreBringAVfBackExactly) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    const std::uint64_t base = rig.get_vf(1).vram_first_offset;
    for (std::uint64_t i = 0; i < 1000; ++i)
        rig.gpu.poke(base + (20u << 20) + i * 977, static_cast<std::uint8_t>(i));
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_SAVE, save), 0);
    EXPECT_EQ(save.bytes, rig.gpu.stream_out.size());
    EXPECT_LT(save.bytes, 8u << 20) << "zeroes are not written out";
    for (std::uint64_t i = 0; i < 1000; ++i) rig.gpu.poke(base + (20u << 20) + i * 977, 0xff);
    rig.gpu.stream_in.assign(rig.gpu.stream_out);
    vgpu_pf_stream restore{sizeof(restore), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_RESTORE, restore), 0) << rig.message();
    EXPECT_EQ(restore.bytes, save.bytes);
    for (std::uint64_t i = 0; i < 1000; ++i)
        ASSERT_EQ(rig.gpu.peek(base + (20u << 20) + i * 977), static_cast<std::uint8_t>(i));
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
}

TEST(Stream, MoreStateThanExpectedGetsMoreRoom) {
    Rig rig;
    rig.provision(1, 16);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.state_bytes = 9u << 20;
    ASSERT_GT(rig.gpu.state_bytes, VGPU_STREAM_BUFFER_BASE + 8 * VGPU_STREAM_BUFFER_OF_CU);
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_SAVE, save), 0) << rig.message();
    EXPECT_GT(save.bytes, rig.gpu.state_bytes);
    rig.gpu.stream_in.assign(rig.gpu.stream_out);
    vgpu_pf_stream restore{sizeof(restore), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_RESTORE, restore), 0) << rig.message();
    EXPECT_EQ(restore.bytes, save.bytes);
}

TEST(Stream, StateBeyondAllRoomIsRefusedWithItsSize) {
    Rig rig;
    rig.provision(1, 16);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.state_bytes = VGPU_STREAM_BUFFER_MAX;
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    EXPECT_EQ(rig.request(VGPU_PF_OP_SAVE, save), -E2BIG);
    EXPECT_THAT(rig.message(), testing::HasSubstr("33554432 bytes"));
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
}

TEST(Stream, ThePartOfACuHoldsAFullCu) {
    using namespace softgpu;
    constexpr std::size_t kGroupBytes = 64;  // what a work-group has besides its waves
    constexpr std::size_t kFull = cp::kVgprBytesPerCu + cp::kLdsBytesPerCu +
                                  cp::kWavesPerCu * (sizeof(isa::WaveState) + kGroupBytes);
    static_assert(kFull <= VGPU_STREAM_BUFFER_OF_CU);
    static_assert(HW_REG_COUNT * sizeof(std::uint32_t) <= VGPU_STREAM_BUFFER_BASE / 2);
}

TEST(Stream, AReaderThatIsSlowHoldsNobodyUp) {
    Rig rig;
    rig.make_busy(2);
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.stream_room = 100;
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_SAVE, &save, 5), -EINPROGRESS);
    const std::uint64_t before = rig.get_vf(2).service_ns;
    rig.gpu.run_for(2 * kSecond);
    EXPECT_FALSE(rig.gpu.is_done(5));
    EXPECT_GT(rig.get_vf(2).service_ns - before, kSecond);
    rig.gpu.stream_room.reset();
    vgpu_pf_stream_ready(rig.pf.get());
    rig.gpu.run_for(kSecond);
    ASSERT_TRUE(rig.gpu.is_done(5));
    EXPECT_EQ(rig.gpu.done[5].first, 0);
}

TEST(Stream, NeedsAPausedVf) {
    Rig rig;
    rig.provision(1);
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    EXPECT_EQ(rig.request(VGPU_PF_OP_SAVE, save), -EINVAL);
    EXPECT_EQ(rig.message(), "VF1: is PROVISIONED; pause it first");
}

TEST(Stream, EveryDamagedByteIsNoticed) {
    Rig rig;
    rig.provision(1, 16);
    rig.control(1, VGPU_PF_PAUSE);
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_SAVE, save), 0);
    const std::vector<std::uint8_t> good = rig.gpu.stream_out;
    for (std::size_t at = 0; at < good.size(); at += at < 200 ? 1 : good.size() / 40) {
        if (at >= 36 && at < 60) continue;  // identity: kept by the head's checksum below
        Rig fresh;
        fresh.provision(1, 16);
        fresh.control(1, VGPU_PF_PAUSE);
        std::vector<std::uint8_t> bad = good;
        bad[at] ^= 0x10;
        fresh.gpu.stream_in.assign(std::move(bad));
        vgpu_pf_stream restore{sizeof(restore), 1, 0, 0, 0};
        EXPECT_NE(fresh.request(VGPU_PF_OP_RESTORE, restore), 0) << at;
        EXPECT_NE(fresh.vf(1).state, VGPU_PF_VF_MISMATCH);
    }
}

TEST(Stream, AShortStreamIsRefusedAndAHalfRestoredVfIsStopped) {
    Rig rig;
    rig.provision(1, 16);
    rig.control(1, VGPU_PF_PAUSE);
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_SAVE, save), 0);
    rig.gpu.stream_in.assign({rig.gpu.stream_out.begin(), rig.gpu.stream_out.end() - 30});
    vgpu_pf_stream restore{sizeof(restore), 1, 0, 0, 0};
    EXPECT_EQ(rig.request(VGPU_PF_OP_RESTORE, restore), -EBADMSG);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Dump, TellsAboutEveryVfAndTheLastTransitions) {
    Rig rig;
    rig.make_busy(2);
    rig.gpu.run_for(kMs);
    vgpu_pf_stream dump{sizeof(dump), 0, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_DUMP, dump), 0);
    const std::string text(rig.gpu.stream_out.begin(), rig.gpu.stream_out.end());
    EXPECT_THAT(text, testing::HasSubstr("VF2: RUNNING, generation 1, VRAM 32 MiB"));
    EXPECT_THAT(text, testing::HasSubstr("VF2: ABSENT --PROVISION--> PROVISIONED"));
    EXPECT_THAT(text, testing::HasSubstr("VF4: ABSENT"));
}

}  // namespace
}  // namespace vgpu::test
