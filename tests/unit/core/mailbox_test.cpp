// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

struct Message {
    const char* name;
    std::uint32_t number;
    std::uint32_t answer;  ///< MAILBOX_VF_*, 0: only acknowledged
};

constexpr std::uint32_t MAILBOX_VF_NONE = 0;
constexpr Message kMessages[] = {
#define MAILBOX_TO_PF(name, number, answer, doc) {#name, number, MAILBOX_VF_##answer},
#define MAILBOX_TO_VF(name, number, doc)
#include "pf-driver/hw/mailbox.def"
#undef MAILBOX_TO_PF
#undef MAILBOX_TO_VF
};

class MailboxMessage : public testing::TestWithParam<Message> {};

TEST_P(MailboxMessage, IsAcknowledgedAtOnceAndAnsweredAsTheTableSays) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    rig.gpu.guest_sends(1, GetParam().number, 11, 22, 33);
    EXPECT_TRUE(rig.gpu.vf(1).to_pf_acked);
    rig.gpu.run_for(3 * kSecond / 2);
    if (GetParam().answer == MAILBOX_VF_NONE)
        EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
    else
        EXPECT_THAT(rig.gpu.vf(1).received, Contains(GetParam().answer));
    EXPECT_EQ(rig.get_vf(1).mailbox_messages, 1u);
    EXPECT_EQ(rig.get_vf(1).mailbox_unknown, 0u);
}

INSTANTIATE_TEST_SUITE_P(Every, MailboxMessage, testing::ValuesIn(kMessages),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Mailbox, EveryUnknownNumberIsAcknowledgedAndCounted) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    rig.vf(1).guard.limits[VGPU_GUARD_INTERRUPT] = UINT32_MAX;
    std::uint64_t unknown = 0;
    for (std::uint32_t number = 0; number < 1024; ++number) {
        if (std::ranges::any_of(kMessages, [&](const Message& m) { return m.number == number; }))
            continue;
        rig.gpu.guest_sends(1, number, 1, 2, 3);
        ASSERT_TRUE(rig.gpu.vf(1).to_pf_acked) << number;
        ++unknown;
    }
    EXPECT_EQ(rig.get_vf(1).mailbox_unknown, unknown);
    EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
}

void reach(Rig& rig, std::uint32_t state) {
    if (state == VGPU_PF_VF_ABSENT) return;
    rig.provision(1);
    if (state == VGPU_PF_VF_PROVISIONED) return;
    rig.load_driver(1);
    if (state == VGPU_PF_VF_RUNNING || state == VGPU_PF_VF_RESETTING)
        rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(kMs);
    if (state == VGPU_PF_VF_PAUSED) rig.control(1, VGPU_PF_PAUSE);
    if (state == VGPU_PF_VF_STOPPED) rig.control(1, VGPU_PF_STOP);
    if (state == VGPU_PF_VF_RESETTING) rig.control(1, VGPU_PF_RESET);
    if (state == VGPU_PF_VF_QUARANTINED)
        rig.post(1, VGPU_VF_EVENT_QUARANTINE, VGPU_PF_REASON_GUARD);
    if (state == VGPU_PF_VF_SCRUBBING) rig.release(1);
    if (state == VGPU_PF_VF_MISMATCH) rig.post(1, VGPU_VF_EVENT_RESET_DONE, VGPU_PF_REASON_NONE);
    rig.gpu.run_for(kMs);
    rig.gpu.guest_acknowledges(1);
    rig.gpu.vf(1).received.clear();
}

TEST(Mailbox, RequestsInEveryStateGetAnAnswerWithinHalfTheGuestsLimit) {
    for (std::uint32_t state = 0; state < VGPU_PF_VF_STATES; ++state) {
        for (const std::uint32_t request :
             {MAILBOX_REQ_GPU_INIT_ACCESS, MAILBOX_REQ_GPU_FINI_ACCESS, MAILBOX_REQ_GPU_INIT_DATA,
              MAILBOX_REQ_GPU_RESET_ACCESS}) {
            Rig rig;
            reach(rig, state);
            ASSERT_EQ(rig.vf(1).state, state);
            rig.gpu.guest_sends(1, request);
            EXPECT_TRUE(rig.gpu.vf(1).to_pf_acked);
            rig.gpu.run_for(MAILBOX_GUEST_MSG_LIMIT_MS / 2 * kMs + kMs);
            EXPECT_THAT(rig.gpu.vf(1).received, Not(IsEmpty()))
                << vgpu_pf_control_state_name(state) << ", request " << request;
        }
    }
}

TEST(Mailbox, AnImpossibleEventAnswersTheResetThatAGuestRequested) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_RESET_ACCESS);
    ASSERT_THAT(rig.gpu.vf(1).received, Not(Contains(MAILBOX_VF_FAIL)));
    rig.post(1, VGPU_VF_EVENT_RESET_DONE, VGPU_PF_REASON_NONE);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_MISMATCH);
    EXPECT_THAT(rig.gpu.vf(1).received, Contains(MAILBOX_VF_FAIL));
}

TEST(Mailbox, FullAccessOpensTheRegisterGateUntilItIsReleased) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), HW_FIELD_MASK(VGPU_GATES, FB_EN) |
                                                       HW_FIELD_MASK(VGPU_GATES, DOORBELL_EN) |
                                                       HW_FIELD_MASK(VGPU_GATES, REGWR_EN));
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u);
    rig.gpu.guest_sends(1, MAILBOX_REL_GPU_INIT_ACCESS);
    EXPECT_EQ(HW_GET(VGPU_GATES, REGWR_EN, rig.gpu.bank(1, REG_VGPU_VF0_GATES)), 0u);
    const auto access = rig.events(VGPU_PF_EVENT_FULL_ACCESS, 1);
    ASSERT_EQ(access.size(), 2u);
    EXPECT_EQ(access[0].arg, 1u);
    EXPECT_EQ(access[1].arg, 0u);
}

TEST(Mailbox, FullAccessThatIsNotGivenBackEndsWithAReset) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(2990 * kMs);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.vf(1).last_error, VGPU_PF_REASON_FULL_ACCESS_TIMEOUT);
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 1u);
    EXPECT_EQ(rig.gpu.vf(1).generation, 1u) << "one FLR";
}

TEST(Mailbox, FullAccessGoesOnAfterAPauseAndStillHasAnEnd) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    rig.gpu.run_for(10 * kSecond);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    rig.gpu.run_for(2990 * kMs);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 1u) << "a pause is not its guest's doing";
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 0u);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 1u);
}

TEST(Mailbox, ANewCoreEndsFullAccessInTimeButNoPause) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    rig.restart_core();
    rig.gpu.run_for(10 * kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    rig.restart_core();
    ASSERT_EQ(rig.get_vf(1).in_full_access, 1u);
    rig.gpu.run_for(4 * kSecond);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 1u);
}

TEST(Mailbox, TheTimeScaleStretchesWaitsForGuests) {
    Rig rig({}, [](vgpu_pf_params& params) { params.time_scale = 20; });
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(59 * kSecond);
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 0u);
    rig.gpu.run_for(20 * kSecond);
    EXPECT_EQ(rig.get_vf(1).full_access_timeouts, 1u);
}

TEST(Mailbox, ARequestOfAPausedVfIsAnsweredWhenItResumes) {
    Rig rig;
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(kSecond);
    EXPECT_THAT(rig.gpu.vf(1).received, IsEmpty());
    ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
}

TEST(Mailbox, AnAnswerTheGuestHasNotTakenIsNotOverwrittenByANotice) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.vf(1).has_interrupts = true;
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU));
    rig.gpu.guest_acknowledges(1);
    EXPECT_THAT(rig.gpu.vf(1).received,
                ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU, MAILBOX_VF_FLR_NOTIFICATION));
}

TEST(Mailbox, AnAcknowledgementThatComesWhileMessagesAreHandledIsNotLost) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.vf(1).has_interrupts = true;
    rig.gpu.lose_interrupts = true;
    rig.gpu.guest_acknowledges(1);
    rig.gpu.lose_interrupts = false;
    rig.gpu.do_guests_acknowledge_at_once = true;
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    EXPECT_THAT(rig.gpu.vf(1).received,
                ElementsAre(MAILBOX_VF_READY_TO_ACCESS_GPU, MAILBOX_VF_READY_TO_ACCESS_GPU,
                            MAILBOX_VF_FLR_NOTIFICATION));
}

TEST(Mailbox, GuestErrorsBecomeEvents) {
    Rig rig;
    rig.provision(1);
    rig.gpu.guest_sends(1, MAILBOX_LOG_VF_ERROR, 0xaa, 0xbb, 0xcc);
    const auto errors = rig.events(VGPU_PF_EVENT_GUEST_ERROR, 1);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].arg, 0xaaull | 0xbbull << 32);
    EXPECT_EQ(errors[0].arg2 & 0xffffffff, 0xccu);
}

TEST(Mailbox, WhatTheGuestSaysAboutItselfIsCheckedAndCleaned) {
    Rig rig;
    rig.provision(1);
    rig.load_driver(1);
    const std::uint64_t at = rig.get_vf(1).vram_first_offset + VF_VRAM_VF2PF_OFFSET;
    std::vector<std::uint8_t> message(1024);
    const auto put = [&](std::size_t offset, std::uint32_t value) {
        for (std::size_t i = 0; i < 4; ++i)
            message[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
    };
    put(VF2PF_SIZE, 1024);
    put(VF2PF_VERSION_OFFSET, VF2PF_VERSION);
    put(VF2PF_FB_USAGE_MB, 4000);
    const std::string text = "6.12\x1b[31m";
    std::ranges::copy(text, message.begin() + VF2PF_DRIVER_VERSION);
    std::uint32_t sum = 0;
    for (const std::uint8_t byte : message) sum += byte;
    put(VF2PF_CHECKSUM, sum);
    for (std::size_t i = 0; i < message.size(); ++i) rig.gpu.poke(at + i, message[i]);
    EXPECT_STREQ(rig.get_vf(1).driver_version, "6.12?[31m");
    EXPECT_EQ(rig.get_vf(1).guest_fb_usage_bytes, 32u << 20) << "no more than the VF has";
    rig.gpu.poke(at + 500, 1);
    EXPECT_STREQ(rig.get_vf(1).driver_version, "");
}

// --- resets

TEST(Mailbox, ARequestThatWaitsForAVfThatIsTakenAwayIsRefused) {
    Rig rig;
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.post(1, VGPU_VF_EVENT_QUARANTINE, VGPU_PF_REASON_GUARD);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_FAIL));
}

TEST(Mailbox, ARequestThatWaitsForAVfThatIsReleasedIsRefused) {
    Rig rig;
    rig.provision(1);
    rig.control(1, VGPU_PF_PAUSE);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_EQ(rig.release(1), 0);
    EXPECT_THAT(rig.gpu.vf(1).received, ElementsAre(MAILBOX_VF_FAIL));
}

}  // namespace
}  // namespace vgpu::test
