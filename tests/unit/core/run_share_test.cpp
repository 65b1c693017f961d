// SPDX-License-Identifier: MIT
//
// Tables with weights, carried out with nobody above, on a virtual clock: shares are those of the
// weights whatever the order of the entries, sleepers neither save up nor lose, gaps are kept. How
// far anybody is from its share in random lives is tested with the planner (product_lag_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/core/record.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::HasSubstr;

/// The longest time between two runs.
std::uint64_t longest_gap(const Record& record, std::uint32_t vf) {
    const std::vector<Interval>& runs = record.of(vf);
    std::uint64_t longest = 0;
    for (std::size_t i = 1; i < runs.size(); ++i)
        longest = std::max(longest, runs[i].start - runs[i - 1].end);
    return longest;
}

TEST(Share, IsThatOfTheWeightsWhateverTheEntriesSay) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}, {3, 2000}}, {{1, 100}, {2, 300}, {3, 600}}),
              0);
    rig.gpu.run_for(100 * kMs);
    const Record record(rig);
    rig.gpu.run_for(20 * kSecond);
    EXPECT_NEAR(record.share(1), 0.1, 0.001);
    EXPECT_NEAR(record.share(2), 0.3, 0.001);
    EXPECT_NEAR(record.share(3), 0.6, 0.001);
}

TEST(Share, AnOrderThatKeepsTheWeightsIsFollowed) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_weights({{3, 2000}, {1, 2000}, {3, 2000}, {2, 2000}},
                              {{1, 100}, {2, 100}, {3, 200}}),
              0);
    rig.gpu.run_for(100 * kMs);
    const Record record(rig);
    rig.gpu.run_for(10 * kSecond);
    const std::uint64_t switch_ns = 1 * kMs;
    EXPECT_LE(longest_gap(record, 3), 2 * kMs + switch_ns) << "every other slice is its own";
    EXPECT_LE(longest_gap(record, 1), 6 * kMs + 3 * switch_ns);
}

TEST(Share, OverrunsAreTakenFromTheGuiltyVf) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    rig.gpu.overrun = [](std::uint32_t vf) -> std::uint64_t { return vf == 2 ? kMs : 0; };
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}, {3, 2000}}, {{1, 100}, {2, 100}, {3, 100}}),
              0);
    rig.gpu.run_for(100 * kMs);
    const Record record(rig);
    rig.gpu.run_for(20 * kSecond);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) EXPECT_NEAR(record.share(vf), 1.0 / 3, 0.001) << vf;
}

TEST(Share, OfASleeperGoesToTheOthersByTheirWeights) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.make_ready(3);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {3, 2000}, {2, 2000}}, {{1, 100}, {2, 300}, {3, 600}}),
              0);
    rig.gpu.run_for(100 * kMs);
    const Record record(rig);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_NEAR(record.share(1), 0.25, 0.002);
    EXPECT_EQ(record.service(3), 0u);
}

TEST(Share, SleepSavesNothingUp) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}}, {{1, 100}, {2, 100}}), 0);
    rig.gpu.run_for(5 * kSecond);
    const Record record(rig);
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(200 * kMs);
    EXPECT_NEAR(static_cast<double>(record.service(1)), static_cast<double>(record.service(2)),
                2.0 * 2 * kMs);
}

TEST(Share, GoingToSleepIsNoWayNotToPay) {
    Rig rig;
    rig.make_ready(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_weights({{1, 4000}, {2, 4000}}, {{1, 100}, {2, 100}}), 0);
    rig.gpu.run_for(100 * kMs);
    const Record record(rig);
    // just less than a slice each time, again as soon as it is done
    for (int i = 0; i < 4000; ++i) {
        if (rig.gpu.vf(1).work_ns == 0) rig.gpu.give_work(1, 3900 * kUs);
        rig.gpu.run_for(kMs);
    }
    EXPECT_LE(record.share(1), 0.505);
}

TEST(Share, ANewWeightHoldsFromItsTableOn) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}}, {{1, 100}, {2, 100}}), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}}, {{1, 100}, {2, 900}}), 0);
    rig.gpu.run_for(20 * kMs);
    const Record record(rig);
    rig.gpu.run_for(4 * kSecond);
    EXPECT_NEAR(record.share(1), 0.1, 0.001);
}

TEST(Share, ATableWithoutWeightsIsCarriedOutAsItStands) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}}, {{1, 100}, {2, 900}}), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.set_table({{1, 2000}, {2, 2000}}), 0);
    rig.gpu.run_for(20 * kMs);
    const Record record(rig);
    rig.gpu.run_for(4 * kSecond);
    EXPECT_NEAR(record.share(1), 0.5, 0.001);
}

TEST(Gap, IsKeptWhereTheShareLeavesALongerOne) {
    for (const bool has_gap : {false, true}) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}}, {{1, 1}, {2, 99}},
                                  has_gap ? std::map<std::uint32_t, std::uint32_t>{{1, 30'000}}
                                          : std::map<std::uint32_t, std::uint32_t>{}),
                  0);
        rig.gpu.run_for(500 * kMs);
        const Record record(rig);
        rig.gpu.run_for(5 * kSecond);
        if (has_gap)
            EXPECT_LE(longest_gap(record, 1), 30 * kMs);
        else
            EXPECT_GT(longest_gap(record, 1), 90 * kMs) << "2 ms are its share of 200";
    }
}

/// When all has settled, nobody waits for longer than it may.
void expect_gaps(Rig& rig, const std::map<std::uint32_t, std::uint32_t>& max_gap_us,
                 const std::string& what = "") {
    rig.gpu.run_for(500 * kMs);
    const Record record(rig);
    rig.gpu.run_for(5 * kSecond);
    for (const auto& [vf, us] : max_gap_us)
        EXPECT_LE(longest_gap(record, vf), us * kUs) << "VF" << vf << what;
}

TEST(Gap, IsKeptForManyWhoseTimeIsUpAtOnce) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    std::map<std::uint32_t, std::uint32_t> gaps{{1, 40'000}, {2, 40'000}, {3, 40'000}};
    ASSERT_EQ(rig.set_weights({{4, 2000}, {1, 2000}, {2, 2000}, {3, 2000}},
                              {{1, 1}, {2, 1}, {3, 1}, {4, 300}}, gaps),
              0);
    expect_gaps(rig, gaps);
}

/// Of two whose time is up soon, whose turn it is may be the one that can wait less.
TEST(Gap, IsKeptWhoeverOfThoseWithLittleTimeLeftIsNext) {
    for (std::uint32_t seed = 1; seed <= 100; ++seed) {
        Rig rig;
        for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
        std::minstd_rand rng(seed);
        std::map<std::uint32_t, std::uint32_t> weights{{4, 100}}, gaps;
        for (std::uint32_t vf = 1; vf <= 3; ++vf) {
            weights[vf] = 1 + static_cast<std::uint32_t>(rng() % 40);
            gaps[vf] = 12'000 + static_cast<std::uint32_t>(rng() % 12'000);
        }
        ASSERT_EQ(
            rig.set_weights({{4, 1900}, {1, 1700}, {4, 1900}, {2, 1800}, {4, 1900}, {3, 1600}},
                            weights, gaps),
            0);
        expect_gaps(rig, gaps, ", seed " + std::to_string(seed));
    }
}

/// A switch that takes 1 ms is known as such as soon as there has been one.
TEST(Gap, IsKeptWhereSwitchesAreSlow) {
    Rig rig;
    rig.gpu.step_ns = 200 * kUs;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    const std::map<std::uint32_t, std::uint32_t> gaps{{1, 40'000}, {2, 40'000}};
    ASSERT_EQ(rig.set_weights({{1, 5000}, {3, 5000}, {2, 5000}, {3, 5000}, {3, 5000}},
                              {{1, 1}, {2, 1}, {3, 8}}, gaps),
              0);
    expect_gaps(rig, gaps);
}

/// Cut to 1 ms, it would be followed by the turn itself: two switches for one.
TEST(Gap, ATurnThatWouldComeALittleTooLateComesEarlyAndWhole) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_weights({{4, 8000},
                               {3, 8000},
                               {4, 8000},
                               {1, 8000},
                               {4, 8000},
                               {3, 8000},
                               {4, 8000},
                               {2, 8000}},
                              {{1, 1}, {2, 1}, {3, 2}, {4, 4}}, {{1, 56'000}, {2, 56'000}}),
              0);
    rig.gpu.run_for(500 * kMs);
    const Record record(rig);
    rig.gpu.run_for(5 * kSecond);
    for (std::uint32_t vf = 1; vf <= 2; ++vf) {
        EXPECT_LE(longest_gap(record, vf), 56 * kMs) << vf;
        const auto& runs = record.of(vf);
        const auto is_short = [](const Interval& run) { return run.ns() < 4 * kMs; };
        EXPECT_LE(std::ranges::count_if(runs, is_short), std::ssize(runs) / 3) << vf;
    }
}

/// Answers its reset at once and asks for full access; it has work that hangs.
void recover_and_hang(Rig& rig, std::uint32_t vf) {
    std::vector<std::uint32_t>& received = rig.gpu.vf(vf).received;
    if (received.empty()) return;
    const std::uint32_t message = received.back();
    received.clear();
    rig.gpu.guest_acknowledges(vf);
    if (message == MAILBOX_VF_FLR_NOTIFICATION) {
        rig.gpu.guest_sends(vf, MAILBOX_READY_TO_RESET);
    } else if (message == MAILBOX_VF_FLR_NOTIFICATION_CMPL) {
        rig.gpu.guest_sends(vf, MAILBOX_REQ_GPU_INIT_ACCESS);
        rig.gpu.hang(vf);
        rig.gpu.give_work(vf, kEndless);
    }
}

TEST(Gap, IsExceededByOneHangOnlyIfTheNeighbourHangsAgainInItsFullAccess) {
    constexpr std::uint32_t kPreemptTimeoutUs = 3000;
    constexpr std::uint64_t kGap = 10 * kMs, kNet = 20 * kMs;
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    vgpu_pf_set_preempt_timeout(rig.pf.get(), 2, kPreemptTimeoutUs);
    ASSERT_EQ(rig.set_weights({{1, 2000}, {2, 2000}}, {{1, 1}, {2, 1}}, {{1, kGap / kUs}}), 0);
    rig.gpu.run_for(500 * kMs);
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(20 * kUs);
    const Record record(rig);
    std::uint64_t longest = 0;
    rig.gpu.on_start = [&](std::uint32_t vf) {
        if (vf == 1) longest = std::max(longest, rig.gpu.now() - record.of(1).back().end);
    };
    rig.gpu.vf(2).received.clear();
    rig.gpu.hang(2);
    const std::uint64_t latest = rig.gpu.now() + 200 * kMs;
    while (rig.vf(2).reset.hang_count < 2 && rig.gpu.now() < latest) {
        rig.gpu.run_for(20 * kUs);
        recover_and_hang(rig, 2);
    }
    ASSERT_EQ(rig.vf(2).reset.hang_count, 2u) << "full access comes with time in the engine";
    rig.gpu.run_for(20 * kMs);
    EXPECT_LE(longest, kGap + kNet + kPreemptTimeoutUs * kUs + kMs);
    ASSERT_EQ(record.of(2).size(), 2u);
    EXPECT_GE(record.service(1, record.of(2)[0].end, record.of(2)[1].start), kMs)
        << "a run of VF1 between the hangs, which the reserve does not cut";
}

TEST(Weights, ReadBackAsSetAndOutliveTheCore) {
    Rig rig;
    ASSERT_EQ(rig.set_weights({{1, 500}, {2, 700}}, {{1, 10'000}, {2, 1}}, {{2, 60'000}}), 0);
    const auto check = [&] {
        vgpu_pf_run_table table{};
        ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
        EXPECT_EQ(table.count, 2u);
        EXPECT_EQ(table.weights[0], 10'000u);
        EXPECT_EQ(table.weights[1], 1u);
        EXPECT_EQ(table.weights[2], 0u);
        EXPECT_EQ(table.max_gap_us[0], 0u);
        EXPECT_EQ(table.max_gap_us[1], 60'000u);
        EXPECT_EQ(vgpu_pf_weight_of(rig.pf.get(), 1), 10'000u);
        EXPECT_EQ(vgpu_pf_weight_of(rig.pf.get(), 3), 0u);
        EXPECT_EQ(vgpu_pf_quantum_of(rig.pf.get(), 2), 700u);
        EXPECT_EQ(vgpu_pf_quantum_of(rig.pf.get(), 3), 0u);
    };
    check();
    rig.gpu.run_for(kMs);
    rig.restart_core();
    check();
}

TEST(Weights, BeyondTheRangeAreRefusedWithTheirVf) {
    Rig rig;
    EXPECT_EQ(rig.set_weights({{1, 500}}, {{2, 10'001}}), -EINVAL);
    EXPECT_EQ(rig.message(), "run table: VF2 has weight 10001; 0 to 10000");
    EXPECT_EQ(rig.set_weights({{1, 500}}, {{1, 1}}, {{1, 999}}), -EINVAL);
    EXPECT_EQ(rig.message(), "run table: VF1 has a max_gap_us of 999; 0, or 1000 and more");
    EXPECT_EQ(rig.set_weights({{1, 500}}, {{9, 1}}), -EINVAL);
    EXPECT_THAT(rig.message(), HasSubstr("VF9; VFs are 1 to 4"));
}

}  // namespace
}  // namespace vgpu::test
