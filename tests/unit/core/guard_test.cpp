// SPDX-License-Identifier: MIT
//
// The guard: windows over what guests cause, and how much of it is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/hw/regs.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Guard, LimitsAreGimsAndEventsLeaveTheWindow) {
    Rig rig;
    rig.provision(1);
    for (int i = 0; i < 3; ++i) {
        rig.load_driver(1);
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_RESET_ACCESS);
        rig.gpu.run_for(100 * kMs);
    }
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_FLR], 3u);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u);
    rig.gpu.guest_sends(1, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(61 * kSecond);
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_FLR], 0u);
}

TEST(Guard, AFloodIsAnsweredStepByStepAndEndsInQuarantine) {
    Rig rig;
    rig.provision(1);
    rig.load_driver(1);
    for (int i = 0; i < 120 && rig.vf(1).state != VGPU_PF_VF_QUARANTINED; ++i) {
        rig.gpu.guest_sends(1, 999);
        rig.gpu.run_for(200 * kMs);
        ASSERT_TRUE(rig.gpu.vf(1).to_pf_acked) << "acknowledged within the guest's limit";
    }
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_QUARANTINED);
    std::vector<std::uint64_t> levels;
    for (const auto& event : rig.events(VGPU_PF_EVENT_GUARD, 1)) levels.push_back(event.arg2);
    EXPECT_THAT(levels, ElementsAre(1, 2, 3, 4, 5));
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), 0u);
    EXPECT_EQ(rig.control(1, VGPU_PF_CLEAR_QUARANTINE), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Guard, OperatorAndDetachResetsAreNotCounted) {
    Rig rig;
    rig.provision(1);
    for (int i = 0; i < 8; ++i) {
        rig.load_driver(1);
        rig.gpu.attach_client(1, true);
        rig.control(1, VGPU_PF_RESET);
        rig.gpu.run_for(kSecond);
        rig.gpu.attach_client(1, false);
        rig.gpu.run_for(10 * kMs);
    }
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_FLR], 0u);
}

TEST(Guard, APausedVfResumesWhenItsWindowHasPassed) {
    Rig rig;
    rig.provision(1);
    rig.load_driver(1);
    while (rig.vf(1).state != VGPU_PF_VF_PAUSED) {
        rig.gpu.guest_sends(1, 999);
        rig.gpu.run_for(200 * kMs);
    }
    rig.gpu.run_for(70 * kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u);
}

/// Of an operator, and not ended when the guard's window has passed.
void expect_lasting_pause(Rig& rig) {
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    rig.gpu.run_for(70 * kSecond);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
}

TEST(Guard, WhereAResetTookThePlaceOfItsPauseThereIsNothingToResume) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.post(1, VGPU_VF_EVENT_RESET, VGPU_PF_REASON_FULL_ACCESS_TIMEOUT);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING) << "on its way out";
    rig.provoke_pause(1);
    rig.gpu.run_for(2 * kSecond);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    expect_lasting_pause(rig);
}

TEST(Guard, ItsPauseIsForgottenWithAReset) {
    Rig rig;
    rig.make_ready(1);
    rig.provoke_pause(1);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(2 * kSecond);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    expect_lasting_pause(rig);
}

TEST(Guard, APauseThatAnOperatorWantsTooIsTheOperators) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    rig.provoke_pause(1);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_RUNNING) << "on its way out";
    expect_lasting_pause(rig);
}

TEST(Guard, ANewCoreResumesWhatTheOneBeforeHasPaused) {
    Rig rig;
    rig.make_ready(1);
    rig.provision(2);
    rig.provoke_pause(1);
    ASSERT_EQ(rig.control(2, VGPU_PF_PAUSE), 0);
    rig.restart_core();
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    rig.gpu.run_for(70 * kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PAUSED) << "that was an operator";
}

TEST(Guard, NoLimitMeansNoLimit) {
    Rig rig;
    vgpu_pf_provision request{};
    request.vf = 1;
    request.vram_bytes = 16u << 20;
    std::ranges::fill(request.guard_limits, UINT32_MAX);
    ASSERT_EQ(rig.request(VGPU_PF_OP_PROVISION, request), 0);
    for (int i = 0; i < 500; ++i) rig.gpu.guest_sends(1, 999);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u);
}

TEST(Guard, AnFlrOfAGuestWithoutADriverCounts) {
    Rig rig;
    rig.provision(1);
    rig.gpu.attach_client(1, true);
    for (int i = 0; i < 8; ++i) {
        rig.gpu.guest_resets_function(1);
        rig.gpu.run_for(100 * kMs);
    }
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_QUARANTINED);
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_FLR], 8u);
}

TEST(Guard, AVfThatWasNeverProvisionedHasTheDefaultLimits) {
    Rig rig;
    rig.gpu.attach_client(1, true);
    rig.gpu.guest_resets_function(1);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(100 * kMs);
    EXPECT_TRUE(rig.events(VGPU_PF_EVENT_GUARD, 1).empty());
    EXPECT_EQ(rig.vf(1).guard.level, 0u);
}

TEST(Guard, AHangIsAResetThatTheGuestCaused) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    for (int i = 0; i < 12 && rig.vf(1).state != VGPU_PF_VF_QUARANTINED; ++i) {
        rig.gpu.hang(1);
        rig.gpu.run_for(kSecond);
        // as slowly as a guest that is throttled
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(200 * kMs);
        rig.gpu.guest_acknowledges(1);
        rig.gpu.guest_sends(1, MAILBOX_REL_GPU_INIT_ACCESS);
        rig.gpu.run_for(200 * kMs);
        rig.gpu.give_work(1, kEndless);
    }
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_QUARANTINED);
    EXPECT_EQ(rig.get_vf(2).guard_events[VGPU_GUARD_FLR], 0u);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_RUNNING);
}

/// A guest that is in quarantine.
struct Quarantined : testing::Test {
    Quarantined() {
        rig.provision(1);
        rig.gpu.attach_client(1, true);
        while (rig.vf(1).state != VGPU_PF_VF_QUARANTINED) {
            rig.gpu.guest_sends(1, 999);
            rig.gpu.run_for(200 * kMs);
        }
    }
    Rig rig;
};

TEST_F(Quarantined, IsQuietWhateverItsGuestDoes) {
    rig.gpu.run_for(61 * kSecond);
    const std::size_t events = rig.events().size();
    rig.gpu.log_lines.clear();
    for (int i = 0; i < 1000; ++i) {
        rig.gpu.guest_sends(1, MAILBOX_LOG_VF_ERROR, 1, 2, 3);
        rig.gpu.run_for(100 * kMs);
        rig.gpu.guest_resets_function(1);
        rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.run_for(200 * kMs);
        ASSERT_TRUE(rig.gpu.vf(1).to_pf_acked) << "it still gets its answers";
    }
    EXPECT_EQ(rig.events().size(), events);
    EXPECT_THAT(rig.gpu.log_lines, IsEmpty());
    EXPECT_EQ(rig.get_vf(1).guard_level, 5u) << "as long as it is in quarantine";
}

TEST_F(Quarantined, StartsWithEmptyWindowsWhenAnOperatorClearsIt) {
    ASSERT_EQ(rig.control(1, VGPU_PF_CLEAR_QUARANTINE), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u);
    EXPECT_EQ(rig.get_vf(1).guard_events[VGPU_GUARD_INTERRUPT], 0u);
}

TEST_F(Quarantined, IsQuietUnderANewCoreToo) {
    rig.restart_core();
    EXPECT_EQ(rig.get_vf(1).guard_level, 5u);
    const std::size_t events = rig.events().size();
    for (int i = 0; i < 200; ++i) {
        rig.gpu.guest_sends(1, MAILBOX_LOG_VF_ERROR, 1, 2, 3);
        rig.gpu.run_for(200 * kMs);
    }
    EXPECT_EQ(rig.events().size(), events);
}

TEST_F(Quarantined, LeavesItsLevelBehindWhenItIsReleased) {
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(62 * kSecond);
    ASSERT_EQ(rig.durable(1), 0);
    ASSERT_EQ(rig.provision(1), 0);
    EXPECT_EQ(rig.get_vf(1).guard_level, 0u);
}

/// Without limits, so that nothing but the reports is bounded.
void provision_without_limits(Rig& rig) {
    vgpu_pf_provision request{};
    request.vf = 1;
    request.vram_bytes = 16u << 20;
    std::ranges::fill(request.guard_limits, UINT32_MAX);
    ASSERT_EQ(rig.request(VGPU_PF_OP_PROVISION, request), 0);
    rig.gpu.attach_client(1, true);
}

std::size_t notified(const Rig& rig) {
    std::size_t count = rig.gpu.log_lines.size();
    for (const auto type : {VGPU_PF_EVENT_GUEST_ERROR, VGPU_PF_EVENT_RESET_DONE, VGPU_PF_EVENT_HANG,
                            VGPU_PF_EVENT_GUARD, VGPU_PF_EVENT_UNREPORTED})
        count += rig.events(type, 1).size();
    return count;
}

struct Flood {
    const char* name;
    std::uint64_t pause_ns;
    void (*once)(Rig& rig);
};

void PrintTo(const Flood& flood, std::ostream* out) {
    *out << flood.name;
}

class WhatAGuestCauses : public testing::TestWithParam<Flood> {};

TEST_P(WhatAGuestCauses, IsReportedAFewTimesAMinuteAndThenByNumber) {
    const std::uint64_t times = 50 * kSecond / GetParam().pause_ns;
    Rig rig;
    provision_without_limits(rig);
    rig.make_busy(2);
    rig.gpu.log_lines.clear();
    for (std::uint64_t i = 0; i < times; ++i) {
        GetParam().once(rig);
        rig.gpu.run_for(GetParam().pause_ns);
    }
    EXPECT_GE(notified(rig), 10u);
    EXPECT_LE(notified(rig), 30u);
    rig.gpu.run_for(61 * kSecond);
    ASSERT_EQ(rig.events(VGPU_PF_EVENT_UNREPORTED, 1).size(), 1u);
    EXPECT_GE(rig.events(VGPU_PF_EVENT_UNREPORTED, 1)[0].arg, times - 30);
}

INSTANTIATE_TEST_SUITE_P(
    Every, WhatAGuestCauses,
    testing::Values(Flood{"Errors", 200 * kMs,
                          [](Rig& rig) { rig.gpu.guest_sends(1, MAILBOX_LOG_VF_ERROR, 1, 2, 3); }},
                    Flood{"Poison", 200 * kMs,
                          [](Rig& rig) { rig.gpu.guest_sends(1, MAILBOX_RAS_POISON, 1, 2, 3); }},
                    Flood{"Flrs", 200 * kMs, [](Rig& rig) { rig.gpu.guest_resets_function(1); }},
                    Flood{"Resets", 200 * kMs,
                          [](Rig& rig) {
                              rig.gpu.guest_acknowledges(1);
                              rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_RESET_ACCESS);
                          }},
                    Flood{"Detaches", 200 * kMs,
                          [](Rig& rig) {
                              rig.gpu.attach_client(1, true);
                              rig.gpu.attach_client(1, false);
                          }},
                    Flood{"Hangs", kSecond,
                          [](Rig& rig) {
                              rig.load_driver(1);
                              rig.gpu.give_work(1, kEndless);
                              rig.gpu.hang(1);
                          }},
                    Flood{"AccessNotGivenBack", kSecond,
                          [](Rig& rig) {
                              rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
                              rig.vf(1).timers_ns[VGPU_VF_TIMER_ACCESS] = rig.gpu.now() + kMs;
                          }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Guard, AGuestThatStaysNearALimitDoesNotHaveItReportedOverAndOver) {
    Rig rig;
    rig.provision(1);
    rig.gpu.log_lines.clear();
    for (int i = 0; i < 600; ++i) {
        rig.gpu.guest_sends(1, 999);
        rig.gpu.run_for(kSecond + 40 * kMs);  // 57 or 58 a minute; 56 are allowed
    }
    EXPECT_LE(rig.events(VGPU_PF_EVENT_GUARD, 1).size(), 4u);
    EXPECT_LE(rig.gpu.log_lines.size(), 3u);
}

TEST(Guard, OneThatIsThrottledIsAnsweredInTimeThoughItsLevelRises) {
    constexpr std::uint32_t kThrottle = 2;
    Rig rig;
    rig.provision(1);
    while (rig.vf(1).guard.level < kThrottle)
        vgpu_pf_guard_count(rig.pf.get(), &rig.vf(1), VGPU_GUARD_EXCLUSIVE);
    vgpu_pf_do_pending(rig.pf.get());
    rig.gpu.guest_sends(1, 999);
    ASSERT_FALSE(rig.gpu.vf(1).to_pf_acked);
    while (rig.vf(1).guard.level == kThrottle)
        vgpu_pf_guard_count(rig.pf.get(), &rig.vf(1), VGPU_GUARD_EXCLUSIVE);
    vgpu_pf_do_pending(rig.pf.get());
    rig.gpu.run_for(MAILBOX_GUEST_ACK_LIMIT_MS / 2 * kMs);
    EXPECT_TRUE(rig.gpu.vf(1).to_pf_acked);
}

}  // namespace
}  // namespace vgpu::test
