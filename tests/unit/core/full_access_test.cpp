// SPDX-License-Identifier: MIT
//
// Full access that stops the other VFs, because the device has no banked registers: who runs, and
// who gets full access next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/core/top/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// VF1 has work without an end, VF2 too, and the table stands still for it.
void begin_exclusive_access(Rig& rig) {
    rig.make_busy(1);
    rig.provision(2, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(kMs);
}

TEST(FullAccess, AnExclusiveVfStopsTheTableDuringFullAccess) {
    Rig rig;
    begin_exclusive_access(rig);
    const std::uint64_t before = rig.get_vf(1).switches;
    EXPECT_EQ(rig.gpu.loaded(), 2u);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).switches, before);
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(30 * kMs);
    EXPECT_GT(rig.get_vf(1).switches, before);
}

TEST(FullAccess, NoOtherVfRunsWhileAnExclusiveVfWithFullAccessHasNoWork) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(3);
    rig.provision(2, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
    rig.gpu.run_for(10 * kMs);
    ASSERT_NE(rig.gpu.loaded(), 0u);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(5 * kMs);
    const std::uint64_t before = rig.get_vf(1).service_ns + rig.get_vf(3).service_ns;
    EXPECT_EQ(rig.gpu.loaded(), 0u);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).service_ns + rig.get_vf(3).service_ns, before);
    rig.gpu.give_work(2, 5 * kMs);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(2).work_ns, 0u) << "its own work is served";
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(100 * kMs);
    EXPECT_GT(rig.get_vf(1).service_ns + rig.get_vf(3).service_ns, before);
}

TEST(FullAccess, OfAnExclusiveVfStopsTheTableAtEachPointOfASwitch) {
    for (std::uint64_t us = 0; us < 12'000; us += 50) {
        SCOPED_TRACE(us);
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(3);
        rig.provision(2, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
        rig.gpu.run_for(us * kUs);
        rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(3 * kMs);
        ASSERT_EQ(rig.gpu.loaded(), 0u);
    }
}

TEST(FullAccess, AGuestThatRepeatsItsRequestGetsNoMoreTime) {
    for (const std::uint32_t request : {MAILBOX_REQ_GPU_INIT_ACCESS, MAILBOX_REQ_GPU_FINI_ACCESS}) {
        Rig rig;
        rig.provision(1, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
        rig.gpu.guest_sends(1, request);
        rig.gpu.run_for(2900 * kMs);
        EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
        rig.gpu.guest_acknowledges(1);
        rig.gpu.guest_sends(1, request);
        rig.gpu.run_for(200 * kMs);
        EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 1u);
        EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
    }
}

TEST(FullAccess, AGuestThatUnloadsWithoutEndReachesTheGuard) {
    Rig rig;
    rig.provision(1, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
    for (int i = 0; i < 10; ++i) {
        rig.gpu.guest_acknowledges(1);
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_FINI_ACCESS);
        rig.gpu.run_for(2900 * kMs);
        rig.gpu.guest_acknowledges(1);
        rig.gpu.guest_sends(1, MAILBOX_REL_GPU_FINI_ACCESS);
        rig.gpu.run_for(100 * kMs);
    }
    EXPECT_EQ(rig.get_vf(1).guard_level, 1u);
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 0u);
}

bool may_write_registers(const Rig& rig, std::uint32_t vf) {
    return HW_GET(VGPU_GATES, REGWR_EN, rig.gpu.bank(vf, REG_VGPU_VF0_GATES)) != 0;
}

TEST(FullAccess, APausedExclusiveVfResumesOnlyWhenNoOtherVfHasFullAccess) {
    for (const std::uint32_t flags : {0u, 0u + VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS}) {
        SCOPED_TRACE(flags);
        Rig rig;
        rig.provision(1, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
        rig.provision(2, 32, flags);
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(kMs);
        EXPECT_TRUE(may_write_registers(rig, 1));
        ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
        EXPECT_FALSE(may_write_registers(rig, 1));
        rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(kMs);
        ASSERT_EQ(rig.get_vf(2).in_full_access, 1u);
        EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), -EBUSY);
        EXPECT_EQ(rig.message(), "VF1: full access of another VF excludes it; try again");
        rig.gpu.guest_acknowledges(2);
        rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
        rig.gpu.run_for(kMs);
        ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
        EXPECT_TRUE(may_write_registers(rig, 1));
        EXPECT_EQ(rig.pf->scheduler.exclusive_vf, 1u);
    }
}

TEST(FullAccess, ThatAnExclusiveVfGetsAfterADeviceResetStopsTheTable) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.device_reset_ns = 100 * kMs;
    rig.control(1, VGPU_PF_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(300 * kMs);
    EXPECT_EQ(rig.get_vf(2).in_full_access, 1u);
    EXPECT_EQ(rig.pf->scheduler.exclusive_vf, 2u);
}

TEST(FullAccess, OnlyThePauseOfAnExclusiveVfLetsTheTableGoOn) {
    Rig rig;
    rig.provision(3);
    begin_exclusive_access(rig);
    ASSERT_EQ(rig.gpu.loaded(), 2u);
    const std::uint64_t before = rig.get_vf(1).switches;
    ASSERT_EQ(rig.control(3, VGPU_PF_PAUSE), 0);
    rig.gpu.run_for(100 * kMs);
    EXPECT_EQ(rig.get_vf(1).switches, before);
    ASSERT_EQ(rig.control(2, VGPU_PF_PAUSE), 0);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.loaded(), 1u);
}

TEST(FullAccess, AnExclusiveVfStopsTheTableAgainWhenItResumes) {
    Rig rig;
    begin_exclusive_access(rig);
    ASSERT_EQ(rig.control(2, VGPU_PF_PAUSE), 0);
    rig.gpu.run_for(10 * kMs);
    ASSERT_EQ(rig.control(2, VGPU_PF_RESUME), 0);
    rig.gpu.run_for(10 * kMs);
    const std::uint64_t before = rig.get_vf(1).switches;
    EXPECT_EQ(rig.gpu.loaded(), 2u);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).switches, before);
    rig.restart_core();
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).switches, 0u) << "nor is it let go by a new core";
}

/// VF2 has had exclusive full access for a second; VF1 and VF3 request exclusive full access.
void request_exclusive_access_of_three(Rig& rig) {
    for (std::uint32_t vf = 1; vf <= 3; ++vf)
        rig.provision(vf, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(kSecond);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.guest_sends(3, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(kMs);
}

TEST(FullAccess, ExclusiveFullAccessPassesFromOneVfToTheNext) {
    Rig rig;
    request_exclusive_access_of_three(rig);
    EXPECT_EQ(rig.get_vf(2).in_full_access, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
    EXPECT_THAT(rig.gpu.vf(3).received, IsEmpty());
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(kMs);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_THAT(rig.gpu.vf(3).received, IsEmpty());
    rig.gpu.guest_sends(1, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(kMs);
    EXPECT_THAT(rig.gpu.vf(3).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
}

TEST(FullAccess, ExclusiveFullAccessPassesOnAfterPauseReleaseAndTimeOut) {
    for (const int how : {0, 1, 2}) {
        SCOPED_TRACE(how);
        Rig rig;
        request_exclusive_access_of_three(rig);
        if (how == 0) {
            ASSERT_EQ(rig.control(2, VGPU_PF_PAUSE), 0);
        } else if (how == 1) {
            ASSERT_EQ(rig.release(2), 0);
        }
        rig.gpu.run_for(how == 2 ? 2100 * kMs : kMs);
        EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
        EXPECT_THAT(rig.gpu.vf(3).received, IsEmpty());
    }
}

TEST(FullAccess, AResetThatAGuestRequestsEndsWithFullAccessWhenNoOtherVfHasIt) {
    Rig rig;
    rig.provision(1);
    rig.provision(2, 32, VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_RESET_ACCESS);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).flrs, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(kSecond);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_EQ(rig.get_vf(1).flrs, 1u);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
}

TEST(FullAccess, ARequestForExclusiveFullAccessFailsIfItWaitsTooLong) {
    Rig rig({}, [](vgpu_pf_params& params) { params.time_scale = 20; });
    request_exclusive_access_of_three(rig);
    rig.gpu.run_for(MAILBOX_GUEST_MSG_LIMIT_MS / 2 * kMs + kMs);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_FAIL));
    EXPECT_EQ(rig.get_vf(2).in_full_access, 1u);
}

TEST(FullAccess, FullAccessDoesNotStopTheNeighboursByDefault) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    const std::uint64_t before = rig.get_vf(1).service_ns;
    for (int i = 0; i < 100; ++i) {
        rig.gpu.give_work(2, 100 * kUs);
        rig.gpu.run_for(10 * kMs);
    }
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(kSecond);
    EXPECT_GT(rig.get_vf(1).service_ns - before, kSecond * 9 / 10);
}

}  // namespace
}  // namespace vgpu::test
