// SPDX-License-Identifier: MIT
//
// An attach that does not come to its end: the core is as it was before, and the next one works. A
// reset of the device that does not end: the device is lost until it can be attached again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/platform_watch.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

/// A core that has not seen a device yet.
void start_anew(Rig& rig) {
    const vgpu_pf_params params = rig.pf->params;
    vgpu_pf_surprise_remove(rig.pf.get());
    vgpu_pf_init(rig.pf.get(), rig.gpu.os(), &params);
}

void expect_same_device(const vgpu_pf_info& info, const vgpu_pf_info& before) {
    EXPECT_EQ(info.total_vfs, before.total_vfs);
    EXPECT_EQ(info.vram_bytes, before.vram_bytes);
    EXPECT_EQ(info.vram_aperture_bytes, before.vram_aperture_bytes);
    EXPECT_EQ(info.doorbell_pages, before.doorbell_pages);
    EXPECT_EQ(info.cu_count, before.cu_count);
}

/// Accesses of an attach, as the rig is now.
std::uint64_t count_accesses(Rig& rig) {
    const std::uint64_t before = rig.gpu.accesses;
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
    return rig.gpu.accesses - before;
}

/// All of the first, where the device is asked what it is, and some of those that follow.
std::uint64_t next_point(std::uint64_t point) {
    return point < 20 ? point + 1 : point + 7;
}

TEST(Attach, AnyAccessOfTheFirstOneMayFail) {
    Rig whole;
    const vgpu_pf_info good = whole.get_info();
    start_anew(whole);
    const std::uint64_t accesses = count_accesses(whole);
    for (std::uint64_t point = 0; point < accesses; point = next_point(point)) {
        SCOPED_TRACE(point);
        Rig rig;
        start_anew(rig);
        rig.gpu.fail_after = point;
        const bool is_refused = vgpu_pf_attach(rig.pf.get()) != 0;
        rig.gpu.fail_after.reset();
        if (is_refused) {
            EXPECT_EQ(rig.get_info().device_lost, 1u);
            EXPECT_EQ(rig.get_info().total_vfs, 0u) << "nothing is known of it";
            ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
        }
        expect_same_device(rig.get_info(), good);
        EXPECT_EQ(rig.provision(4), 0) << rig.message();
    }
}

/// Its platform detaches it then, and attaches again when the device is back.
TEST(Attach, ADeviceMayBeLostInTheMiddleAndComeBack) {
    const auto lose = [](Rig& rig) {
        rig.make_busy(1);
        rig.gpu.run_for(20 * kMs);
        rig.gpu.is_gone = true;
        vgpu_pf_surprise_remove(rig.pf.get());
        rig.gpu.is_gone = false;
    };
    Rig whole;
    const vgpu_pf_info good = whole.get_info();
    lose(whole);
    const std::uint64_t accesses = count_accesses(whole);
    for (std::uint64_t point = 0; point < accesses; point = next_point(point)) {
        SCOPED_TRACE(point);
        Rig rig;
        lose(rig);
        PlatformWatch watch(rig.gpu);
        const std::uint64_t lost_at = rig.gpu.accesses + point;
        watch.on_access = [&] { rig.gpu.is_gone = rig.gpu.accesses >= lost_at; };
        if (vgpu_pf_attach(rig.pf.get()) == 0) vgpu_pf_surprise_remove(rig.pf.get());
        watch.on_access = nullptr;
        expect_same_device(rig.get_info(), good);
        EXPECT_EQ(rig.get_info().device_lost, 1u);
        rig.gpu.is_gone = false;
        ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
        expect_same_device(rig.get_info(), good);
        rig.gpu.run_for(kSecond);
        EXPECT_NE(rig.vf(1).state, VGPU_PF_VF_MISMATCH);
        EXPECT_EQ(rig.provision(4), 0) << rig.message();
    }
}

TEST(Attach, ADeviceWithMoreVfsThanTheCoreHasLeavesNothingBehind) {
    Rig rig;
    rig.make_busy(1);
    const vgpu_pf_info good = rig.get_info();
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    ModelGpu large({.total_vfs = VGPU_PF_MAX_VFS + 1});
    rig.gpu.bind(nullptr);
    rig.pf->os = large.os();
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), -ENODEV);
    EXPECT_EQ(rig.message(), "device reports 17 VFs; 1 to 16 are supported");
    expect_same_device(rig.get_info(), good);
    vgpu_pf_vf beyond{};
    beyond.vf = VGPU_PF_MAX_VFS + 1;
    EXPECT_EQ(rig.request(VGPU_PF_OP_GET_VF, beyond), -ENOENT);
    rig.pf->os = rig.gpu.os();
    rig.gpu.bind(rig.pf.get());
    rig.gpu.is_gone = false;
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
}

/// Homes look at it from other threads.
TEST(Attach, WhatADeviceAnswersIsNotTakenBeforeItHasBeenChecked) {
    Rig rig;
    const std::uint32_t vfs = rig.pf->device.total_vfs;
    vgpu_pf_surprise_remove(rig.pf.get());
    ModelGpu large({.total_vfs = 4 * VGPU_PF_MAX_VFS});
    rig.gpu.bind(nullptr);
    rig.pf->os = large.os();
    PlatformWatch watch(large);
    bool is_as_before = true;
    watch.on_access = [&] { is_as_before &= rig.pf->device.total_vfs == vfs; };
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), -ENODEV);
    EXPECT_GT(large.accesses, 5u);
    EXPECT_TRUE(is_as_before);
    rig.pf->os = rig.gpu.os();
}

// --- a reset of the whole device that does not end

/// VF1's own reset does not end, and that of the device takes 5 s, longer than it may.
struct OverdueReset : testing::Test {
    OverdueReset() {
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.run_for(20 * kMs);
        rig.gpu.vf(1).flr_never_ends = true;
        rig.gpu.device_reset_ns = 5 * kSecond;
        rig.gpu.device_reset_keeps_vram = true;
    }
    void begin() {
        rig.control(1, VGPU_PF_RESET);
        while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    }
    void wait_for_its_end() {
        rig.gpu.run_for(3 * kSecond);
        ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
        rig.gpu.run_for(10 * kMs);
    }
    Rig rig;
};

TEST_F(OverdueReset, IsALossOfTheDevice) {
    begin();
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_info().device_lost, 0u) << "it has 2 s";
    rig.gpu.run_for(1100 * kMs);
    EXPECT_EQ(rig.get_info().device_lost, 1u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_DEVICE_LOST).size(), 1u);
    EXPECT_TRUE(rig.events(VGPU_PF_EVENT_DEVICE_BACK).empty());
    EXPECT_EQ(rig.provision(3), -ENODEV);
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_STOPPED);
        EXPECT_EQ(rig.vf(vf).last_error, VGPU_PF_REASON_DEVICE_LOST);
    }
    const std::uint64_t accesses = rig.gpu.accesses;
    rig.gpu.run_for(2 * kSecond);
    EXPECT_EQ(rig.gpu.accesses, accesses) << "it is left alone";
}

TEST_F(OverdueReset, TakesTheDeviceOffTheBusBeforeItFreesMemory) {
    rig.control(2, VGPU_PF_PAUSE);
    ASSERT_EQ(rig.vf(2).state, VGPU_PF_VF_PAUSED);
    PlatformWatch watch(rig.gpu);
    rig.gpu.bulk_ns = 100 * kSecond;
    vgpu_pf_stream save{sizeof(save), 2, 0, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_SAVE, &save, 1000), -EINPROGRESS);
    rig.gpu.run_for(kMs);
    begin();
    ASSERT_TRUE(rig.gpu.is_done(1000));
    EXPECT_EQ(rig.gpu.done[1000].first, -EIO);
    ASSERT_EQ(watch.pieces(), 1u) << "the device may still write to it";
    EXPECT_TRUE(watch.is_bus_master());
    watch.on_free = [&] { EXPECT_FALSE(watch.is_bus_master()); };
    rig.gpu.run_for(2200 * kMs);
    EXPECT_EQ(rig.get_info().device_lost, 1u);
    EXPECT_EQ(watch.pieces(), 0u);
    watch.on_free = nullptr;
}

TEST_F(OverdueReset, EndsAProvisionThatWaitsForItsEnd) {
    begin();
    const std::uint64_t free_bytes = rig.get_info().vram_free_bytes;
    vgpu_pf_provision request{};
    request.vf = 3;
    request.vram_bytes = 32u << 20;
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_PROVISION, &request, 1000),
              -EINPROGRESS);
    rig.gpu.run_for(2200 * kMs);
    ASSERT_TRUE(rig.gpu.is_done(1000));
    EXPECT_EQ(rig.gpu.done[1000].first, -ENODEV);
    EXPECT_EQ(rig.vf(3).state, VGPU_PF_VF_ABSENT);
    EXPECT_EQ(rig.get_info().vram_free_bytes, free_bytes);
    wait_for_its_end();
    EXPECT_EQ(rig.provision(3), 0) << rig.message();
}

TEST_F(OverdueReset, IsWaitedForByWhoeverAttaches) {
    begin();
    rig.gpu.run_for(3 * kSecond);
    PlatformWatch watch(rig.gpu);
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), -ENODEV);
    EXPECT_EQ(rig.message(), "the device is still in its reset");
    EXPECT_FALSE(watch.is_bus_master()) << "it may still be at what it was told before";
    EXPECT_EQ(rig.get_info().device_lost, 1u);
}

TEST_F(OverdueReset, ItsVfsAreProgrammedAnewWhenItEndsAllTheSame) {
    begin();
    rig.gpu.run_for(2200 * kMs);
    wait_for_its_end();
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_DEVICE_BACK).size(), 1u);
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_PROVISIONED) << "though there is a checkpoint";
        rig.load_driver(vf);
        rig.gpu.give_work(vf, kEndless);
    }
    rig.gpu.run_for(kSecond);
    for (const std::uint32_t vf : {1u, 2u}) EXPECT_GT(rig.get_vf(vf).service_ns, 400 * kMs);
}

TEST_F(OverdueReset, ALossInItsMiddleIsNoOtherThanOneAtItsEnd) {
    begin();
    rig.gpu.run_for(kSecond);
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
    rig.gpu.is_gone = false;
    rig.gpu.run_for(1200 * kMs);
    wait_for_its_end();
    for (const std::uint32_t vf : {1u, 2u}) EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_PROVISIONED);
}

TEST_F(OverdueReset, WhatAGuestWasOwedIsNotLeftForItsNextReset) {
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    rig.gpu.run_for(2200 * kMs);
    wait_for_its_end();
    rig.load_driver(1);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
    rig.gpu.vf(1).received.clear();
    rig.gpu.vf(1).flr_never_ends = false;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(10 * kMs);
    EXPECT_THAT(rig.gpu.vf(1).received, testing::ElementsAre(MAILBOX_VF_FLR_NOTIFICATION));
}

}  // namespace
}  // namespace vgpu::test
