// SPDX-License-Identifier: MIT
//
// Resets of a VF and of the whole device: what guests are told, what they answer, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/pf2vf.h"
#include "pf-driver/hw/regs.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(Reset, OperatorResetTellsTheGuestWaitsForItAndConfirms) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).received.clear();
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_FLR_NOTIFICATION));
    EXPECT_EQ(rig.gpu.vf(1).generation, 0u) << "FLR only when the guest is ready";
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received,
                ElementsAre(MAILBOX_VF_FLR_NOTIFICATION, MAILBOX_VF_FLR_NOTIFICATION_CMPL));
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    ASSERT_EQ(rig.events(VGPU_PF_EVENT_RESET_DONE, 1).size(), 1u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_RESET_DONE, 1)[0].arg, VGPU_PF_REASON_OPERATOR);
}

TEST(Reset, AGuestThatDoesNotAnswerIsResetInTimeAndMayAnswerLate) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).received.clear();
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_THAT(rig.gpu.vf(1).received,
                ElementsAre(MAILBOX_VF_FLR_NOTIFICATION, MAILBOX_VF_FLR_NOTIFICATION))
        << "the notice stays for a late guest";
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(1).received.back(), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u) << "no second FLR";
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_FLR], 0u);
}

TEST(Reset, AGuestThatDropsTheNoticeIsNotifiedOnceMore) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).received.clear();
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(240 * kMs);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_FLR_NOTIFICATION));
    rig.gpu.run_for(20 * kMs);
    EXPECT_THAT(rig.gpu.vf(1).received,
                ElementsAre(MAILBOX_VF_FLR_NOTIFICATION, MAILBOX_VF_FLR_NOTIFICATION));
    EXPECT_EQ(rig.gpu.vf(1).generation, 0u);
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u);
    EXPECT_EQ(rig.gpu.vf(1).received.back(), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

/// As when a VM is killed during an operator's reset, and another one gets the VF at once.
TEST(Reset, AGuestThatLeavesIsNotWaitedForAndItsSuccessorIsAnswered) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.attach_client(1, true);
    rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(10 * kMs);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
    rig.gpu.attach_client(1, false);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_RESET_DONE, 1).size(), 1u);
    rig.gpu.attach_client(1, true);
    rig.gpu.vf(1).received.clear();
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(10 * kMs);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_FALSE(rig.vf(1).reset.unanswered);
}

TEST(Reset, AGuestsRequestEndsInFullAccess) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).received.clear();
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_RESET_ACCESS);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
    EXPECT_EQ(rig.get_vf(1).guest_flrs, 1u);
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_FLR], 1u);
}

/// Has a guest request a reset whose FLR does not end soon. Return: the messages to it since then.
std::vector<std::uint32_t>& request_long_reset(Rig& rig, std::uint32_t message) {
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.vf(1).received.clear();
    rig.gpu.guest_sends(1, message);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_RESETTING);
    EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
    return rig.gpu.vf(1).received;
}

TEST(Reset, ThatAGuestHasRequestedIsNotAnsweredToItsSuccessor) {
    for (const std::uint32_t message : {MAILBOX_REQ_GPU_RESET_ACCESS, MAILBOX_READY_TO_RESET}) {
        Rig rig;
        rig.gpu.attach_client(1, true);
        const std::vector<std::uint32_t>& received = request_long_reset(rig, message);
        rig.gpu.attach_client(1, false);
        rig.gpu.run_for(kMs);
        rig.gpu.attach_client(1, true);
        rig.gpu.vf(1).flr_never_ends = false;
        rig.gpu.run_for(2 * kSecond);
        EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
        EXPECT_THAT(received, IsEmpty());
        EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
        EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_EXCLUSIVE_TIMEOUT], 0u);
    }
}

TEST(Reset, ThatAGuestHasRequestedIsRefusedIfTheVfIsStoppedQuarantinedOrReleasedMeanwhile) {
    const std::function<void(Rig&)> kEnds[] = {
        [](Rig& rig) { ASSERT_EQ(rig.control(1, VGPU_PF_STOP), 0); },
        [](Rig& rig) { rig.post(1, VGPU_VF_EVENT_QUARANTINE, VGPU_PF_REASON_GUARD); },
        [](Rig& rig) { ASSERT_EQ(rig.release(1), 0); },
    };
    for (const std::uint32_t message : {MAILBOX_REQ_GPU_RESET_ACCESS, MAILBOX_READY_TO_RESET})
        for (const auto& end : kEnds) {
            Rig rig;
            const auto& received = request_long_reset(rig, message);
            end(rig);
            rig.gpu.run_for(kMs);
            EXPECT_THAT(received, ElementsAre(MAILBOX_VF_FAIL)) << message;
        }
}

TEST(Reset, ThatAGuestHasRequestedIsDoneWhenALostDeviceIsBack) {
    for (const auto& [message, answer] : kResetRequests) {
        Rig rig;
        const auto& received = request_long_reset(rig, message);
        rig.gpu.is_gone = true;
        vgpu_pf_surprise_remove(rig.pf.get());
        rig.gpu.run_for(10 * kMs);
        EXPECT_THAT(received, IsEmpty());
        rig.gpu.is_gone = false;
        rig.gpu.power_cycle();
        const std::uint32_t flrs = rig.gpu.vf(1).generation;
        ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
        rig.gpu.run_for(10 * kMs);
        EXPECT_THAT(received, ElementsAre(answer));
        EXPECT_GT(rig.gpu.vf(1).generation, flrs);
    }
}

TEST(Reset, VbiosAndPf2vfAreThereAgainAfterwards) {
    Rig rig;
    rig.make_busy(1);
    const std::uint64_t base = rig.get_vf(1).vram_first_offset;
    rig.gpu.poke(base, 0xff);
    rig.gpu.poke(base + VF_VRAM_PF2VF_OFFSET, 0xff);
    rig.gpu.guest_resets_function(1);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.peek(base), 0x55);
    EXPECT_EQ(rig.gpu.peek(base + VF_VRAM_PF2VF_OFFSET), 0x00);
    EXPECT_EQ(rig.gpu.peek(base + VF_VRAM_PF2VF_OFFSET + 1), 0x04);
}

TEST(Reset, AnFlrThatNeverEndsResetsTheDeviceAndAllVfsStartOver) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(20 * kMs);
    rig.gpu.vf(1).flr_never_ends = true;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(3 * kSecond);
    EXPECT_EQ(rig.gpu.device_resets, 1u);
    EXPECT_EQ(rig.get_info().device_resets, 1u);
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_PROVISIONED);
        EXPECT_EQ(rig.vf(vf).last_error, VGPU_PF_REASON_DEVICE_LOST);
        EXPECT_EQ(rig.gpu.bank(vf, REG_VGPU_VF0_FB_SIZE_MB), 32u);
    }
    rig.load_driver(2);
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.gpu.loaded(), 2u);
}

TEST(Reset, AllGuestsAreNotifiedBeforeTheDeviceIsResetAndAnsweredAfterwards) {
    Rig rig;
    for (const std::uint32_t vf : {1u, 2u}) {
        rig.make_busy(vf);
        rig.gpu.vf(vf).received.clear();
    }
    rig.gpu.run_for(20 * kMs);
    rig.gpu.vf(1).flr_never_ends = true;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(3 * kSecond);
    ASSERT_EQ(rig.gpu.device_resets, 1u);
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_THAT(rig.gpu.vf(vf).received,
                    testing::AllOf(testing::Not(testing::IsEmpty()),
                                   testing::Each(MAILBOX_VF_FLR_NOTIFICATION)));
        rig.gpu.guest_sends(vf, MAILBOX_READY_TO_RESET);
        rig.gpu.run_for(10 * kMs);
        EXPECT_EQ(rig.gpu.vf(vf).received.back(), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
        rig.load_driver(vf);
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_READY);
    }
    EXPECT_EQ(rig.gpu.device_resets, 1u);
}

TEST(Reset, AGuestThatWaitsForItsResetIsAnsweredAfterTheWholeOne) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(20 * kMs);
    rig.gpu.vf(1).received.clear();
    rig.gpu.vf(1).flr_never_ends = true;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.guest_sends(1, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(3 * kSecond);
    ASSERT_EQ(rig.gpu.device_resets, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received,
                ElementsAre(MAILBOX_VF_FLR_NOTIFICATION, MAILBOX_VF_FLR_NOTIFICATION_CMPL));
    rig.load_driver(1);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
}

TEST(Reset, AGuestThatAskedForItsResetGetsTheDeviceAfterTheWholeOne) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(20 * kMs);
    rig.gpu.vf(1).received.clear();
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_RESET_ACCESS);
    rig.gpu.run_for(3 * kSecond);
    ASSERT_EQ(rig.gpu.device_resets, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
}

TEST(Reset, VramThatOutlivesAResetOfTheDeviceIsNotReplacedUnderTheGuest) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(20 * kMs);
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.device_reset_keeps_vram = true;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(3 * kSecond);
    ASSERT_EQ(rig.gpu.device_resets, 1u);
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_EQ(rig.gpu.vf(vf).tables, 1u);
        rig.load_driver(vf);
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_READY);
    }
}

/// As VF1's own reset does not end.
void begin_device_reset(Rig& rig, std::uint64_t takes_ns = 100 * kMs) {
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.device_reset_ns = takes_ns;
    rig.control(1, VGPU_PF_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
}

/// A notification does not replace such a message, but waits for it.
TEST(Reset, OfTheDeviceIsAnnouncedToAGuestThatHasNotAcknowledgedTheMessageBefore) {
    for (const bool is_resetting : {false, true}) {
        Rig rig;
        rig.provision(2);
        rig.gpu.vf(2).has_interrupts = true;
        rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(kMs);
        const int begun = is_resetting ? rig.control(2, VGPU_PF_RESET) : 0;
        ASSERT_EQ(begun, 0);
        ASSERT_THAT(rig.gpu.vf(2).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
        rig.gpu.device_reset_ns = 100 * kMs;
        rig.pf->device_reset.is_due = true;
        vgpu_pf_do_pending(rig.pf.get());
        ASSERT_EQ(rig.gpu.device_resets, 1u);
        EXPECT_THAT(rig.gpu.vf(2).received,
                    ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU, MAILBOX_VF_FLR_NOTIFICATION));
    }
}

TEST(Reset, AGuestThatIsReadyWhileTheDeviceResetsIsAnsweredWhenItIsBack) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(20 * kMs);
    rig.gpu.vf(2).received.clear();
    begin_device_reset(rig);
    rig.gpu.guest_sends(2, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(20 * kMs);
    EXPECT_THAT(rig.gpu.vf(2).received, ElementsAre(MAILBOX_VF_FLR_NOTIFICATION));
    rig.gpu.run_for(200 * kMs);
    EXPECT_THAT(rig.gpu.vf(2).received,
                ElementsAre(MAILBOX_VF_FLR_NOTIFICATION, MAILBOX_VF_FLR_NOTIFICATION_CMPL));
}

TEST(Reset, AGuestThatWasResetBeforeIsNotifiedOfTheWholeOne) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(20 * kMs);
    rig.control(2, VGPU_PF_RESET);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.guest_sends(2, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(10 * kMs);
    rig.load_driver(2);
    rig.gpu.vf(2).received.clear();
    rig.gpu.vf(1).flr_never_ends = true;
    rig.control(1, VGPU_PF_RESET);
    rig.gpu.run_for(3 * kSecond);
    ASSERT_EQ(rig.gpu.device_resets, 1u);
    EXPECT_THAT(rig.gpu.vf(2).received, ElementsAre(MAILBOX_VF_FLR_NOTIFICATION));
}

/// A driver that loads while the PF has its VF reset gets the device when that is over: what it
/// were given before, the reset would take away again.
TEST(Reset, ADriverThatLoadsBeforeTheResetHasBegunIsAnsweredAfterIt) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).received.clear();
    const std::uint64_t token = 77;
    vgpu_pf_control request{sizeof(request), 1, 0, VGPU_PF_RESET};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_CONTROL, &request, token), -EINPROGRESS);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
    rig.gpu.run_for(2 * kSecond);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u);
    EXPECT_EQ(rig.gpu.vf(1).received.back(), MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
}

TEST(Reset, ADriverThatLoadsBeforeThePfHasSeenTheGuestsFlrIsAnsweredAfterIt) {
    for (const bool is_notified : {false, true}) {
        Rig rig;
        rig.make_busy(1);
        rig.gpu.run_for(kMs);
        rig.gpu.vf(1).received.clear();
        rig.gpu.lose_interrupts = !is_notified;
        rig.gpu.guest_resets_function(1);
        rig.gpu.lose_interrupts = false;
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(2 * kSecond);
        EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
        EXPECT_EQ(rig.get_vf(1).in_full_access, 1u) << "and not taken away again";
        EXPECT_EQ(HW_GET(VGPU_GATES, REGWR_EN, rig.gpu.bank(1, REG_VGPU_VF0_GATES)), 1u);
        EXPECT_EQ(rig.events(VGPU_PF_EVENT_RESET_DONE, 1).size(), 1u);
    }
}

/// The interrupt that would have told of it was lost.
TEST(Reset, AMessageThatStillIsInTheBoxIsNotLostByTheReset) {
    Rig rig;
    rig.make_ready(1);
    rig.gpu.vf(1).received.clear();
    rig.gpu.lose_interrupts = true;
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.lose_interrupts = false;
    rig.post(1, VGPU_VF_EVENT_RESET, VGPU_PF_REASON_OPERATOR);
    rig.gpu.run_for(2 * kSecond);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u);
    EXPECT_THAT(rig.gpu.vf(1).received, Contains(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
}

TEST(Reset, ADriverThatLoadsWhileTheDeviceResetsIsAnsweredWhenItIsBack) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    rig.provision(3);
    rig.control(3, VGPU_PF_PAUSE);
    rig.gpu.guest_sends(3, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(20 * kMs);
    begin_device_reset(rig);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(20 * kMs);
    EXPECT_THAT(rig.gpu.vf(2).received, IsEmpty());
    rig.gpu.run_for(200 * kMs);
    EXPECT_THAT(rig.gpu.vf(2).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_THAT(rig.gpu.vf(3).received, IsEmpty()) << "paused";
    ASSERT_EQ(rig.control(3, VGPU_PF_RESUME), 0);
    EXPECT_THAT(rig.gpu.vf(3).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
}

/// VF1 and VF2 with drivers, the whole device in its reset for a second.
struct DeviceReset : testing::Test {
    DeviceReset() {
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.run_for(20 * kMs);
        begin_device_reset(rig, kSecond);
    }
    Rig rig;
};

TEST_F(DeviceReset, IsFollowedByTheResetsThatWereAskedForMeanwhile) {
    for (const std::uint32_t vf : {1u, 2u}) {
        rig.gpu.vf(vf).flr_never_ends = true;  // before the device is back
        ASSERT_EQ(rig.control(vf, VGPU_PF_RESET), 0);
    }
    rig.gpu.run_for(800 * kMs);
    for (const std::uint32_t vf : {1u, 2u})
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_RESETTING) << "there is nothing to reset yet";
    rig.gpu.run_for(400 * kMs);
    EXPECT_EQ(rig.gpu.device_resets, 1u);
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_PROVISIONED);
        EXPECT_EQ(rig.vf(vf).control.mismatches, 0u);
        EXPECT_EQ(rig.gpu.bank(vf, REG_VGPU_VF0_GATES), HW_FIELD_MASK(VGPU_GATES, FB_EN));
        rig.load_driver(vf);
        EXPECT_EQ(rig.vf(vf).state, VGPU_PF_VF_READY);
    }
}

TEST_F(DeviceReset, IsConfirmedToAGuestWhoseVfIsResetAfterIt) {
    rig.control(2, VGPU_PF_RESET);
    rig.gpu.run_for(1200 * kMs);
    ASSERT_EQ(rig.vf(2).state, VGPU_PF_VF_PROVISIONED);
    rig.gpu.guest_sends(2, MAILBOX_READY_TO_RESET);
    rig.gpu.run_for(10 * kMs);
    EXPECT_EQ(rig.gpu.vf(2).received.back(), MAILBOX_VF_FLR_NOTIFICATION_CMPL);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PROVISIONED) << "that was no wish of its own";
    EXPECT_EQ(rig.get_vf(2).guard_events[VGPU_GUARD_FLR], 0u);
}

TEST_F(DeviceReset, AndTheVfsOwnEndInFullAccessForAGuestThatAskedForOne) {
    rig.control(2, VGPU_PF_RESET);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_RESET_ACCESS);
    rig.gpu.run_for(1200 * kMs);
    EXPECT_EQ(rig.vf(2).control.mismatches, 0u);
    EXPECT_EQ(rig.gpu.vf(2).received.back(), MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_EQ(rig.get_vf(2).in_full_access, 1u);
}

TEST_F(DeviceReset, DoesNotReviveAVfThatComesUnderQuarantine) {
    rig.post(2, VGPU_VF_EVENT_QUARANTINE, VGPU_PF_REASON_GUARD);
    rig.gpu.run_for(1200 * kMs);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_QUARANTINED);
    EXPECT_EQ(rig.control(2, VGPU_PF_CLEAR_QUARANTINE), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PROVISIONED);
}

TEST_F(DeviceReset, DoesNotReviveAVfThatAnOperatorStops) {
    rig.control(2, VGPU_PF_RESET);
    ASSERT_EQ(rig.control(2, VGPU_PF_STOP), 0);
    rig.gpu.run_for(1200 * kMs);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_STOPPED);
}

TEST(Reset, OfTheDeviceLeavesTheGatesOfAPausedVfAsTheyWere) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    rig.control(2, VGPU_PF_PAUSE);
    const std::uint32_t gates = rig.gpu.bank(2, REG_VGPU_VF0_GATES);
    ASSERT_NE(gates, 0u);
    begin_device_reset(rig);
    rig.gpu.run_for(200 * kMs);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.gpu.bank(2, REG_VGPU_VF0_GATES), gates);
}

/// A PROVISION of VF3 that the device's reset finds under way, or that comes during the reset.
struct ProvisionInAReset : testing::TestWithParam<bool> {
    ProvisionInAReset() {
        rig.make_busy(1);
        rig.gpu.device_reset_keeps_vram = true;
        if (GetParam()) {
            rig.gpu.bulk_ns = 2 * kSecond;
            begin();
            rig.gpu.run_for(10 * kMs);
        }
        begin_device_reset(rig);
        rig.gpu.bulk_ns = 20 * kUs;
        if (!GetParam()) begin();
    }
    void begin() {
        request.vf = 3;
        request.vram_bytes = 32u << 20;
        EXPECT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_PROVISION, &request, kToken),
                  -EINPROGRESS);
    }
    static constexpr std::uint64_t kToken = 900;
    vgpu_pf_provision request{};
    Rig rig;
};

TEST_P(ProvisionInAReset, WaitsForItsEndAndGivesOnlyVramThatIsScrubbedThen) {
    const std::uint64_t offset = rig.get_vf(3).vram_first_offset + (10u << 20);
    rig.gpu.poke(offset, 0x77);
    rig.gpu.run_for(50 * kMs);
    EXPECT_FALSE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.vf(3).state, VGPU_PF_VF_ABSENT);
    EXPECT_EQ(rig.gpu.peek(offset), 0x77);
    rig.gpu.run_for(5 * kSecond);
    ASSERT_TRUE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.gpu.done[kToken].first, 0);
    EXPECT_EQ(rig.vf(3).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(request.generation, 1u);
    EXPECT_EQ(rig.gpu.peek(offset), 0);
}

INSTANTIATE_TEST_SUITE_P(Reset, ProvisionInAReset, testing::Bool());

TEST(Reset, OfTheDeviceRefusesWhatItWouldSpoil) {
    Rig rig;
    rig.make_busy(1);
    for (const std::uint32_t vf : {2u, 3u}) rig.provision(vf);
    ASSERT_EQ(rig.control(2, VGPU_PF_PAUSE), 0);
    ASSERT_EQ(rig.release(3), 0);
    rig.gpu.run_for(kSecond);
    begin_device_reset(rig);
    vgpu_pf_stream stream{sizeof(stream), 2, 0, 0, 0};
    vgpu_pf_vf_ref ref{sizeof(ref), 3, 0, 0};
    for (const std::uint32_t op : {VGPU_PF_OP_SAVE, VGPU_PF_OP_RESTORE})
        EXPECT_EQ(rig.request(op, stream), -EBUSY);
    EXPECT_EQ(rig.request(VGPU_PF_OP_VERIFY_ZERO, ref), -EBUSY);
    EXPECT_EQ(rig.message(), "the device is being reset; try again");
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.request(VGPU_PF_OP_SAVE, stream), 0) << rig.message();
    EXPECT_EQ(rig.request(VGPU_PF_OP_VERIFY_ZERO, ref), 0) << rig.message();
}

}  // namespace
}  // namespace vgpu::test
