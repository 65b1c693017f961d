// SPDX-License-Identifier: MIT
//
// A PF core that leaves the device or dies, and the next one that takes over its VFs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/hw/regs.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

TEST(Leave, AVfInServiceIsAdoptedByTheNextCore) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    rig.control(2, VGPU_PF_PAUSE);
    rig.gpu.run_for(50 * kMs);
    vgpu_pf_shutdown(rig.pf.get());
    EXPECT_TRUE(rig.events(VGPU_PF_EVENT_DEVICE_LOST).empty()) << "nothing was lost";
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PAUSED);
    rig.restart_core();
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING);
    EXPECT_EQ(rig.gpu.vf(1).generation, 0u) << "nothing was reset";
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.get_vf(2).generation, 1u);
}

TEST(Leave, TheDeviceIsQuietAfterwards) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(50 * kMs);
    vgpu_pf_shutdown(rig.pf.get());
    EXPECT_EQ(rig.gpu.register_value(REG_VGPU_WAKE_ENABLE), 0u);
    EXPECT_EQ(rig.gpu.register_value(REG_VGPU_LOG_SIZE), 0u);
    EXPECT_EQ(rig.gpu.enabled_interrupts(), 0u);
    const std::uint64_t before = rig.gpu.accesses;
    rig.gpu.run_for(5 * kSecond);
    vgpu_pf_shutdown(rig.pf.get());
    EXPECT_EQ(rig.gpu.accesses, before) << "no timer is left";
}

TEST(Leave, ARequestUnderWayEndsWithAnError) {
    Rig rig;
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.stream_room = 100;
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_SAVE, &save, 5), -EINPROGRESS);
    rig.gpu.run_for(kMs);
    vgpu_pf_shutdown(rig.pf.get());
    ASSERT_TRUE(rig.gpu.is_done(5));
    EXPECT_EQ(rig.gpu.done[5].first, -ENODEV);
    vgpu_pf_provision more{};
    more.vf = 2;
    more.vram_bytes = 16u << 20;
    EXPECT_EQ(rig.request(VGPU_PF_OP_PROVISION, more), -ENODEV);
}

TEST(Leave, APauseThatWaitsForTheEngineEndsWithAnError) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    vgpu_pf_control pause{sizeof(pause), 1, 0, VGPU_PF_PAUSE};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_CONTROL, &pause, 77), -EINPROGRESS);
    vgpu_pf_shutdown(rig.pf.get());
    ASSERT_TRUE(rig.gpu.is_done(77));
    EXPECT_EQ(rig.gpu.done[77].first, -ENODEV);
}

TEST(Adoption, FullAccessThatWasGivenBackInTheEngineIsNotTakenForOpen) {
    Rig rig;
    rig.provision(1);
    rig.gpu.give_work(1, kEndless);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(10 * kMs);
    ASSERT_EQ(rig.get_vf(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_RUNNING));
    rig.gpu.guest_acknowledges(1);
    rig.gpu.guest_sends(1, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(10 * kMs);
    ASSERT_EQ(rig.get_vf(1).in_full_access, 0u);
    rig.restart_core();
    EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_EQ(rig.get_vf(1).flrs, 0u);
}

TEST(Adoption, ANewCoreTakesOverVfsInServiceWithoutResettingThem) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.provision(3, 48);
    rig.control(3, VGPU_PF_PAUSE);
    ASSERT_EQ(rig.set_table({{1, 3000}, {2, 1000}}, {{3, 500}}), 0);
    rig.gpu.run_for(50 * kMs);
    const vgpu_pf_vf before = rig.get_vf(3);
    rig.restart_core();
    const vgpu_pf_vf after = rig.get_vf(3);
    EXPECT_EQ(after.state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(after.generation, before.generation);
    EXPECT_EQ(after.vram_bytes, before.vram_bytes);
    EXPECT_EQ(after.vram_first_offset, before.vram_first_offset);
    EXPECT_EQ(after.uuid[0], 3);
    EXPECT_EQ(after.cu_mask, before.cu_mask);
    EXPECT_EQ(rig.get_info().table_generation, 1u);
    EXPECT_EQ(rig.get_info().boot_id, 2u);
    rig.gpu.run_for(100 * kMs);
    for (const std::uint32_t vf : {1u, 2u}) EXPECT_EQ(rig.gpu.vf(vf).generation, 0u);
    const std::uint64_t one = rig.get_vf(1).service_ns, two = rig.get_vf(2).service_ns;
    rig.gpu.run_for(kSecond);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(1).service_ns - one) /
                    static_cast<double>(rig.get_vf(2).service_ns - two),
                3.0, 0.1);
    EXPECT_EQ(rig.provision(4, 400), -EINVAL);
    EXPECT_EQ(rig.provision(4, 256), 0) << "free VRAM is known";
}

/// The events of VF1 wait until VF1 has left the engine.
void await_engine(Rig& rig) {
    rig.make_busy(1);
    rig.make_busy(2);
    for (int i = 0; i < 1000 && !vgpu_pf_run_engine_holds(rig.pf.get(), &rig.vf(1)); ++i)
        rig.gpu.run_for(100 * kUs);
    rig.gpu.vf(1).received.clear();
}

TEST(Adoption, ARequestAfterAnFlrIsAnsweredByTheNextCore) {
    int deferred = 0;
    for (std::uint64_t at = 0; at < 200; ++at) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.run_for(20 * kMs + at * 31 * kUs);
        rig.gpu.guest_resets_function(1);
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
        deferred += rig.vf(1).mailbox.deferred_request != 0 ? 1 : 0;
        rig.restart_core();
        rig.gpu.run_for(kSecond);
        EXPECT_EQ(rig.gpu.vf(1).received.back(), MAILBOX_VF_READY_TO_ACCESS_GPU) << at;
        EXPECT_NE(rig.get_vf(1).state, VGPU_PF_VF_PROVISIONED) << at;
    }
    EXPECT_GT(deferred, 0) << "a reset that waits for the engine";
}

TEST(Adoption, AResetThatAGuestHasRequestedIsDoneByTheNextCore) {
    for (const auto& [request, answer] : kResetRequests)
        for (const bool has_begun : {false, true}) {
            Rig rig;
            await_engine(rig);
            rig.gpu.vf(1).flr_never_ends = has_begun;
            rig.gpu.guest_sends(1, request);
            if (has_begun) rig.gpu.run_for(20 * kMs);
            ASSERT_EQ(rig.vf(1).state == VGPU_PF_VF_RESETTING, has_begun);
            rig.gpu.vf(1).flr_never_ends = false;
            rig.restart_core();
            rig.gpu.run_for(kSecond);
            ASSERT_FALSE(rig.gpu.vf(1).received.empty()) << request << has_begun;
            EXPECT_EQ(rig.gpu.vf(1).received.back(), answer) << request << has_begun;
            EXPECT_EQ(rig.get_vf(1).state == VGPU_PF_VF_PROVISIONED,
                      request == MAILBOX_READY_TO_RESET);
        }
}

TEST(Adoption, AGuestThatIsReadyForAnOperatorsResetIsAnsweredByTheNextCore) {
    Rig rig;
    await_engine(rig);
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(20 * kMs);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
    rig.gpu.vf(1).received.clear();
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.restart_core();
    rig.gpu.run_for(kSecond);
    ASSERT_FALSE(rig.gpu.vf(1).received.empty());
    EXPECT_EQ(rig.gpu.vf(1).received.back(), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Adoption, AResetThatIsOverIsNotRepeatedByTheNextCore) {
    Rig rig;
    await_engine(rig);
    rig.gpu.vf(1).has_interrupts = true;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(20 * kMs);
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    const std::uint32_t before = rig.gpu.vf(1).generation;
    rig.restart_core();
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.gpu.vf(1).generation, before);
}

TEST(Adoption, ACrashAtAnyTimeLeavesNothingStuck) {
    for (std::uint64_t at = 0; at < 60; ++at) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.run_for(20 * kMs + at * 331 * kUs);
        rig.restart_core();
        rig.gpu.run_for(20 * kMs);
        const std::uint64_t one = rig.get_vf(1).service_ns, two = rig.get_vf(2).service_ns;
        rig.gpu.run_for(200 * kMs);
        EXPECT_NEAR(static_cast<double>(rig.get_vf(1).service_ns - one), 100e6, 20e6) << at;
        EXPECT_NEAR(static_cast<double>(rig.get_vf(2).service_ns - two), 100e6, 20e6) << at;
    }
}

TEST(Adoption, AnInterruptedScrubIsDoneAgain) {
    Rig rig;
    rig.provision(1, 64);
    const std::uint64_t base = rig.get_vf(1).vram_first_offset;
    rig.gpu.poke(base + (40u << 20), 0x77);
    rig.gpu.bulk_ns = kSecond;
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(10 * kMs);
    rig.restart_core();
    rig.gpu.bulk_ns = 20 * kUs;
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_SCRUBBING);
    rig.gpu.run_for(5 * kSecond);
    ASSERT_EQ(rig.durable(1), 0);
    ASSERT_EQ(rig.provision(2, 256), 0);
    EXPECT_EQ(rig.gpu.peek(base + (40u << 20)), 0);
}

TEST(Adoption, AnInterruptedResetIsFinished) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(10 * kMs);
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(10 * kMs);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
    rig.restart_core();
    rig.gpu.run_for(2 * kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Adoption, AVfThatAnEarlierCommandPutsIntoTheEngineIsNotPausedWhileItRuns) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    while (rig.pf->scheduler.state != VGPU_SCHEDULER_SWITCHING) rig.gpu.run_for(kUs);
    const std::uint32_t vf = rig.pf->scheduler.next.vf;
    rig.restart_core();
    ASSERT_EQ(rig.pf->scheduler.state, VGPU_SCHEDULER_BROKEN);
    vgpu_pf_control pause{sizeof(pause), vf, 0, VGPU_PF_PAUSE};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_CONTROL, &pause, 77), -EINPROGRESS);
    while (!rig.gpu.is_done(77)) {
        ASSERT_NE(rig.vf(vf).state, VGPU_PF_VF_PAUSED);
        rig.gpu.run_for(kUs);
    }
    EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_PAUSED);
    EXPECT_FALSE(rig.gpu.loaded() == vf && rig.gpu.is_running());
}

TEST(Adoption, ARequestThatWaitsIsAnsweredByTheNextCore) {
    Rig rig;
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(kSecond);
    rig.restart_core();
    rig.control(1, VGPU_PF_RESUME);
    EXPECT_EQ(rig.gpu.vf(1).received, std::vector<std::uint32_t>{MAILBOX_VF_READY_TO_ACCESS_GPU});
    rig.restart_core();
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.gpu.vf(1).received.size(), 1u) << "it is answered once";
}

TEST(Adoption, ATornCheckpointCopyLosesOneStepOnly) {
    Rig rig;
    rig.provision(1);
    rig.provision(2);
    const std::uint64_t newest = rig.pf->checkpoint.seq & 1 ? 0x1000 : 0;
    rig.gpu.poke(newest + 200, static_cast<std::uint8_t>(~rig.gpu.peek(newest + 200)));
    rig.restart_core();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Adoption, AVfThatNoCheckpointKnowsLosesItsResources) {
    Rig rig;
    rig.provision(1);
    for (std::uint64_t offset = 0; offset < 0x2000; ++offset) rig.gpu.poke(offset, 0xff);
    rig.restart_core();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_FB_TABLE_ROOT_LO), 0u);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), 0u);
    EXPECT_EQ(rig.provision(1), 0);
}

TEST(Adoption, ADamagedPageTableIsNotTrusted) {
    Rig rig;
    rig.provision(1);
    rig.provision(2);
    const std::uint64_t leaf_of_two = 0x100000 + 0x80000 + 0x1000;
    const std::uint64_t leaf_of_one = 0x100000 + 0x1000;
    for (std::uint64_t i = 0; i < 4096; ++i)
        rig.gpu.poke(leaf_of_two + i, rig.gpu.peek(leaf_of_one + i));
    rig.restart_core();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_ABSENT) << "two VFs cannot own one unit";
}

// --- streams

}  // namespace
}  // namespace vgpu::test
