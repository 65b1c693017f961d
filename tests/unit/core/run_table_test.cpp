// SPDX-License-Identifier: MIT
//
// The scheduler on a virtual clock: shares and lag over many switches, the reserve section,
// idleness, table swaps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "pf-driver/core/top/parts.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Service of each VF against a fluid server that splits the engine's busy time by weight.
class Oracle {
public:
    Oracle(ModelGpu& gpu, std::vector<double> weights)
        : weights_(std::move(weights)), got_(weights_.size()) {
        for (const double w : weights_) sum_ += w;
        gpu.on_run = [this](const vgpu_hw_run_log_entry& entry) { take(entry); };
    }
    double max_lag = 0;
    std::uint64_t runs = 0;
    [[nodiscard]] double share(std::uint32_t vf) const { return got_[vf - 1] / total_; }

private:
    void take(const vgpu_hw_run_log_entry& entry) {
        const double ran = static_cast<double>(entry.run_end_ns - entry.run_start_ns);
        ++runs;
        // the worst moments are the ends of runs: of the one that ran, and of those that waited
        got_[entry.vf - 1] += ran;
        total_ += ran;
        for (std::size_t i = 0; i < got_.size(); ++i)
            max_lag = std::max(max_lag, std::abs(got_[i] - total_ * weights_[i] / sum_));
    }
    std::vector<double> weights_, got_;
    double sum_ = 0, total_ = 0;
};

TEST(RunTable, SharesFollowTheTableDespiteOverrunsAndLagStaysWithinOneQuantum) {
    Rig rig;
    std::mt19937_64 random(42);
    std::exponential_distribution<double> late(1.0 / 500e3);
    constexpr std::uint64_t kWorst = 2 * kMs;
    rig.gpu.overrun = [&](std::uint32_t) -> std::uint64_t {
        if (random() % 5 != 0) return 0;
        return std::min<std::uint64_t>(static_cast<std::uint64_t>(late(random)), kWorst);
    };
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    // 1:1:2:4 in quanta of 2 ms, spread over the cycle
    const std::uint32_t q = 2000;
    ASSERT_EQ(rig.set_table({{4, q}, {3, q}, {4, q}, {1, q}, {4, q}, {3, q}, {4, q}, {2, q}}), 0);
    rig.gpu.run_for(50 * kMs);
    Oracle oracle(rig.gpu, {1, 1, 2, 4});
    while (oracle.runs < 100000) rig.gpu.run_for(kSecond);
    EXPECT_NEAR(oracle.share(1), 0.125, 0.000125);
    EXPECT_NEAR(oracle.share(2), 0.125, 0.000125);
    EXPECT_NEAR(oracle.share(3), 0.250, 0.00025);
    EXPECT_NEAR(oracle.share(4), 0.500, 0.0005);
    // a cycle of eight quanta: nobody is further off than a quantum and the worst overrun
    EXPECT_LE(oracle.max_lag, static_cast<double>(2 * kMs + 2 * kWorst));
    EXPECT_GE(rig.gpu.total_switches(), 80000u);
}

TEST(RunTable, WithoutOverrunsLagIsBelowOneQuantumOfTheLargestEntry) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}, {3, 2000}, {4, 4000}}), 0);
    rig.gpu.run_for(50 * kMs);
    // start the oracle at the beginning of a cycle
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
    Oracle oracle(rig.gpu, {1, 1, 2, 4});
    while (oracle.runs < 20000) rig.gpu.run_for(kSecond);
    EXPECT_LE(oracle.max_lag, 4.0e6);
}

TEST(RunTable, ServiceComesFromTheRunLogOnly) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    std::uint64_t logged[3] = {};
    rig.gpu.on_run = [&](const vgpu_hw_run_log_entry& entry) {
        logged[entry.vf] += entry.run_end_ns - entry.run_start_ns;
    };
    const std::uint64_t before = rig.get_vf(1).service_ns;
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(1).service_ns - before, logged[1]);
    EXPECT_NEAR(static_cast<double>(logged[1]), 0.5e9, 0.02e9);
}

TEST(RunTable, AnOverrunIsMadeUpForByTheTurnsOfTheOthers) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}}), 0);
    rig.gpu.run_for(10 * kMs);
    bool once = false;
    rig.gpu.overrun = [&](std::uint32_t vf) -> std::uint64_t {
        if (vf != 1 || once) return 0;
        once = true;
        return 2500 * kUs;
    };
    std::vector<std::pair<std::uint32_t, std::uint64_t>> runs;
    rig.gpu.on_run = [&](const vgpu_hw_run_log_entry& entry) {
        runs.emplace_back(entry.vf, (entry.run_end_ns - entry.run_start_ns) / kUs);
    };
    rig.gpu.run_for(20 * kMs);
    const auto long_run = std::ranges::find_if(runs, [](auto run) { return run.second > 3000; });
    ASSERT_NE(long_run, runs.end());
    // VF1 is 1.25 ms ahead: its next slice comes when that puts VF1 no further ahead than a slice
    std::vector<std::pair<std::uint32_t, std::uint64_t>> after(long_run, long_run + 6);
    EXPECT_THAT(after, testing::ElementsAre(testing::Pair(1, 3500), testing::Pair(2, 1000),
                                            testing::Pair(2, 1000), testing::Pair(2, 1000),
                                            testing::Pair(1, 1000), testing::Pair(2, 1000)));
    EXPECT_EQ(rig.get_vf(1).overruns, 1u);
    EXPECT_EQ(rig.get_vf(1).overrun_max_ns, 2500 * kUs);
    ASSERT_EQ(rig.events(VGPU_PF_EVENT_OVERRUN, 1).size(), 1u);
}

TEST(RunTable, PassesOverVfsWithoutWork) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.get_vf(2).switches, 0u);
    EXPECT_GT(rig.get_vf(1).service_ns, kSecond * 9 / 10);
}

TEST(RunTable, TellsWhoRunsOutOfWorkAndWhoHasItAgainWhereverTheyAre) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}}), 0);
    rig.gpu.run_for(50 * kMs);
    const auto idles = rig.events(VGPU_PF_EVENT_IDLE, 2).size();
    const auto wakes = rig.events(VGPU_PF_EVENT_WAKE, 2).size();
    rig.gpu.give_work(2, 1000 * kUs);  // gone exactly when its quantum ends
    rig.gpu.run_for(50 * kMs);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_IDLE, 2).size(), idles + 1);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_WAKE, 2).size(), wakes + 1);
    rig.gpu.give_work(2, 300 * kUs);  // gone in the middle of it
    rig.gpu.run_for(50 * kMs);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_IDLE, 2).size(), idles + 2);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_WAKE, 2).size(), wakes + 2);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_IDLE, 1).size(), 0u);
}

/// What a VF has for its weight: a table without weights says it by the time of its entries.
TEST(RunTable, ATableWithoutWeightsGivesEachVfThePartOfItsEntries) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 2000}, {1, 1000}, {3, 500}}), 0);
    rig.gpu.run_for(50 * kMs);
    Oracle oracle(rig.gpu, {4, 4, 1});
    rig.gpu.run_for(5 * kSecond);
    EXPECT_NEAR(oracle.share(3), 1.0 / 9, 0.001);
    EXPECT_NEAR(oracle.share(1), 4.0 / 9, 0.001);
    EXPECT_LE(oracle.max_lag, 2.1e6);
    vgpu_pf_run_table table{};
    ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.weights[0], table.weights[1]);
    EXPECT_NEAR(table.weights[0], 4.0 * table.weights[2], 4.0);
}

TEST(RunTable, NewSharesHoldFromTheTakeOverOfTheirTable) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}}), 0);
    rig.gpu.run_for(50 * kMs);
    const std::uint64_t before[] = {rig.get_vf(1).service_ns, rig.get_vf(2).service_ns};
    ASSERT_EQ(rig.set_table({{1, 3000}, {2, 1000}}), 0);
    rig.gpu.run_for(200 * kMs);
    const double first = static_cast<double>(rig.get_vf(1).service_ns - before[0]);
    const double second = static_cast<double>(rig.get_vf(2).service_ns - before[1]);
    EXPECT_NEAR(first, 3 * second, 4.0e6);
}

TEST(RunTable, WhatAVfReceivedAloneItDoesNotOwe) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}}), 0);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.run_for(300 * kMs);
    rig.gpu.give_work(2, kEndless);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}}), 0);
    rig.gpu.run_for(5 * kMs);
    const std::uint64_t then[] = {rig.get_vf(1).service_ns, rig.get_vf(2).service_ns};
    rig.gpu.run_for(100 * kMs);
    const double first = static_cast<double>(rig.get_vf(1).service_ns - then[0]);
    const double second = static_cast<double>(rig.get_vf(2).service_ns - then[1]);
    EXPECT_NEAR(first, second, 2.1e6);
}

/// It has left, or is about to: what it received in its whole life no other VF is owed.
TEST(RunTable, AVfThatLeavesTheTableLeavesNoDebt) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.make_ready(3);
    rig.gpu.give_work(3, 100 * kMs);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}, {3, 1000}}), 0);
    rig.gpu.run_for(400 * kMs);
    ASSERT_GE(rig.get_vf(3).service_ns, 100 * kMs);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 1000}}), 0);
    std::uint64_t longest = 0;
    rig.gpu.run_for(5 * kMs);
    rig.gpu.on_run = [&](const vgpu_hw_run_log_entry& entry) {
        longest = std::max(longest, entry.run_end_ns - entry.run_start_ns);
    };
    rig.gpu.run_for(100 * kMs);
    EXPECT_LE(longest, 1100 * kUs);
}

TEST(RunTable, AStrictTableKeepsTheSlotsOfIdleVfs) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 3000}}, {}, VGPU_PF_TABLE_STRICT), 0);
    rig.gpu.run_for(10 * kMs);
    const std::uint64_t before = rig.get_vf(1).service_ns;
    rig.gpu.run_for(400 * kMs);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(1).service_ns - before), 100e6, 3e6);
}

TEST(RunTable, ASoleVfRunsOnWithoutSwitches) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    const std::uint64_t switches = rig.gpu.total_switches();
    rig.gpu.run_for(10 * kSecond);
    EXPECT_EQ(rig.gpu.total_switches(), switches);
    EXPECT_EQ(rig.gpu.loaded(), 1u);
}

TEST(RunTable, AnIdleEngineIsNotPolled) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.vf(1).work_ns = 5 * kMs;
    rig.gpu.run_for(2 * kSecond);
    const std::uint64_t before = rig.gpu.accesses;
    rig.gpu.run_for(10 * kSecond);
    EXPECT_LE(rig.gpu.accesses - before, 20u) << "one look a second for lost interrupts";
}

TEST(RunTable, ASleeperThatWakesGetsTheEngineWhenTheSoleVfHasUsedItsQuantum) {
    Rig rig;
    rig.make_busy(1);
    rig.make_ready(2);
    ASSERT_EQ(rig.set_table({{1, 2000}, {2, 2000}}), 0);
    rig.gpu.run_for(100 * kMs);
    rig.gpu.give_work(2, kEndless);
    const std::uint64_t woken = rig.gpu.now();
    while (rig.gpu.loaded() != 2 && rig.gpu.now() < woken + kSecond) rig.gpu.run_for(10 * kUs);
    EXPECT_LE(rig.gpu.now() - woken, 100 * kUs);
    EXPECT_GE(vgpu_pf_run_share_lag(rig.pf.get(), &rig.vf(1)), -std::int64_t{100 * kUs})
        << "time nobody else wanted is not charged";
}

TEST(RunTable, RestInTheEngineIsNoService) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 2; ++vf) rig.make_ready(vf);
    ASSERT_EQ(rig.set_table({{1, 5000}, {2, 5000}}), 0);
    rig.gpu.run_for(100 * kMs);
    const std::uint64_t before = rig.get_vf(1).service_ns;
    for (int i = 0; i < 5; ++i) {
        rig.gpu.give_work(1, 3 * kMs);
        rig.gpu.run_for(10 * kSecond);
    }
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(kSecond);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(1).service_ns - before), 15e6, 0.5e6)
        << "it was in the engine for 50 s";
    std::uint64_t notified = 0;
    for (const vgpu_pf_event& event : rig.events(VGPU_PF_EVENT_RUN, 1))
        notified += event.duration_ns;
    EXPECT_EQ(notified, rig.get_vf(1).service_ns);
}

TEST(RunTable, WorkThatComesToAVfAtRestIsNotifiedAndAccountedForWhileItRuns) {
    Rig rig;
    rig.make_ready(1);
    ASSERT_EQ(rig.set_table({{1, 5000}}), 0);
    rig.gpu.run_for(20 * kSecond);
    const std::uint64_t before = rig.get_vf(1).service_ns;
    const std::size_t wakes = rig.events(VGPU_PF_EVENT_WAKE, 1).size();
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_GE(rig.get_vf(1).service_ns - before, 8 * kSecond);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_WAKE, 1).size(), wakes + 1);
}

TEST(RunTable, AFreshSoleVfKeepsItsQuantumWhenAnotherWakes) {
    Rig rig;
    rig.make_ready(1);
    rig.make_ready(2);
    ASSERT_EQ(rig.set_table({{1, 5000}, {2, 5000}}), 0);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(kMs);
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(3 * kMs);
    EXPECT_EQ(rig.gpu.loaded(), 1u);
    rig.gpu.run_for(2 * kMs);
    EXPECT_EQ(rig.gpu.loaded(), 2u);
}

TEST(RunTable, GivingUpASliceLetsTheNextOneIn) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 10000}, {2, 10000}}), 0);
    rig.gpu.run_for(30 * kMs);
    while (rig.gpu.loaded() != 2) rig.gpu.run_for(100 * kUs);
    rig.gpu.vf(1).work_ns = kMs;
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
    rig.gpu.run_for(kMs + 200 * kUs);
    EXPECT_EQ(rig.gpu.loaded(), 2u) << "VF1 gave up 9 of 10 ms";
}

TEST(RunTable, TheReserveSectionPreemptsOnWakeWithinItsBudget) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.make_ready(3);
    ASSERT_EQ(rig.set_table({{1, 10000}, {2, 10000}, {3, 10000}}, {{3, 1000}}), 0);
    rig.gpu.run_for(50 * kMs);
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
    while (rig.gpu.loaded() != 2) rig.gpu.run_for(100 * kUs);
    const std::uint32_t victim = 2;  // near the beginning of its slice
    std::uint64_t victim_ns = 0;
    rig.gpu.on_run = [&](const vgpu_hw_run_log_entry& entry) {
        if (entry.vf == victim) victim_ns += entry.run_end_ns - entry.run_start_ns;
    };
    rig.gpu.give_work(3, 500 * kUs);
    rig.gpu.run_for(100 * kUs);
    EXPECT_EQ(rig.gpu.loaded(), 3u);
    rig.gpu.run_for(600 * kUs);
    EXPECT_EQ(rig.gpu.loaded(), victim) << "the cut slice is resumed";
    while (rig.gpu.loaded() == victim) rig.gpu.run_for(100 * kUs);
    EXPECT_NEAR(static_cast<double>(victim_ns), 10e6, 0.01e6) << "and keeps its length";
}

TEST(RunTable, TheReserveStopsWhenItsBudgetIsUsedUp) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 9000}}, {{2, 1000}}), 0);
    rig.gpu.run_for(100 * kMs);
    const std::uint64_t one = rig.get_vf(1).service_ns, two = rig.get_vf(2).service_ns;
    rig.gpu.run_for(2 * kSecond);
    const double share = static_cast<double>(rig.get_vf(2).service_ns - two) /
                         static_cast<double>(rig.get_vf(1).service_ns - one);
    // one reserve budget and, having no entry, one default slice of 6 ms a cycle
    EXPECT_NEAR(share, 7.0 / 9.0, 0.12);
}

/// Two VFs compete in slices of 10 ms; VF3 sleeps, has an entry and a place in the reserve.
void make_reserve_rig(Rig& rig, std::uint32_t reserve_us = 10000) {
    rig.make_busy(1);
    rig.make_busy(2);
    rig.make_ready(3);
    ASSERT_EQ(rig.set_table({{1, 10000}, {2, 10000}, {3, 10000}}, {{3, reserve_us}}), 0);
    rig.gpu.run_for(50 * kMs);
}

TEST(RunTable, AWakeDuringASwitchIsServedFromTheReserve) {
    Rig rig;
    make_reserve_rig(rig);
    while (rig.pf->scheduler.state != VGPU_SCHEDULER_SWITCHING) rig.gpu.run_for(kUs);
    rig.gpu.give_work(3, 500 * kUs);
    rig.gpu.run_for(100 * kUs);
    EXPECT_EQ(rig.gpu.loaded(), 3u);
}

TEST(RunTable, AWakeDuringTheSwitchToASoleVfEndsItsSolitude) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 2; ++vf) rig.make_ready(vf);
    ASSERT_EQ(rig.set_table({{1, 5000}, {2, 5000}}), 0);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.give_work(2, 300 * kUs);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.give_work(1, kEndless);
    while (rig.pf->scheduler.state != VGPU_SCHEDULER_SWITCHING) rig.gpu.run_for(kUs);
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(6 * kMs);
    EXPECT_EQ(rig.gpu.loaded(), 2u) << "VF1's quantum is over, not 500 ms of a sole VF";
}

TEST(RunTable, WhatAVfTakesFromTheReserveIsTakenOffItsOwnTurns) {
    Rig rig;
    make_reserve_rig(rig);
    rig.gpu.give_work(3, kEndless);
    const std::uint64_t before[] = {rig.get_vf(1).service_ns, rig.get_vf(2).service_ns,
                                    rig.get_vf(3).service_ns};
    std::uint64_t max = 0;
    for (int i = 0; i < 3000; ++i) {
        rig.gpu.run_for(kMs);
        const std::uint64_t one = rig.get_vf(1).service_ns - before[0];
        const std::uint64_t three = rig.get_vf(3).service_ns - before[2];
        if (three > one) max = std::max(max, three - one);
    }
    const double total = 3e9;
    for (std::uint32_t vf = 1; vf <= 3; ++vf)
        EXPECT_NEAR(static_cast<double>(rig.get_vf(vf).service_ns - before[vf - 1]) / total,
                    1.0 / 3, 0.01)
            << "VF" << vf;
    EXPECT_LE(max, 21 * kMs) << "ahead by one slice, and by one that another had not begun";
}

TEST(RunTable, AVfThatKeepsWakingGetsNoMoreThanItsPart) {
    Rig rig;
    make_reserve_rig(rig);
    const std::uint64_t before[] = {rig.get_vf(1).service_ns, rig.get_vf(3).service_ns};
    for (int i = 0; i < 3000; ++i) {  // 4 of 5 ms if it were served at once each time
        if (rig.gpu.vf(3).work_ns == 0) rig.gpu.give_work(3, 4 * kMs);
        rig.gpu.run_for(kMs);
    }
    const auto one = static_cast<double>(rig.get_vf(1).service_ns - before[0]);
    const auto three = static_cast<double>(rig.get_vf(3).service_ns - before[1]);
    EXPECT_LE(three, one * 1.02);
}

TEST(RunTable, ATurnThatASleeperDoesNotNeedPaysWhatItOwes) {
    Rig rig;
    make_reserve_rig(rig);
    rig.gpu.give_work(3, 9 * kMs);
    rig.gpu.run_for(15 * kMs);
    const auto lag = [&] { return vgpu_pf_run_share_lag(rig.pf.get(), &rig.vf(3)); };
    EXPECT_LE(lag(), -std::int64_t{2 * kMs});
    rig.gpu.run_for(60 * kMs);
    EXPECT_EQ(lag(), 0);
}

TEST(RunTable, ALostWakeCostsASecondAtMost) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 2; ++vf) rig.make_ready(vf);
    rig.gpu.give_work(1, kMs);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.gpu.loaded(), 1u) << "rests there without an end";
    rig.gpu.give_work(1, kEndless);
    rig.gpu.lose_interrupts = true;
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(1100 * kMs);
    EXPECT_GT(rig.get_vf(2).switches, 0u);
}

TEST(RunTable, AReserveThatANewTableTakesAwayStillEndsTheSolitude) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 2; ++vf) rig.make_ready(vf);
    ASSERT_EQ(rig.set_table({{1, 2000}, {2, 2000}}, {{2, 1000}}), 0);
    rig.gpu.run_for(50 * kMs);
    rig.gpu.give_work(2, 300 * kUs);
    rig.gpu.run_for(10 * kMs);
    rig.gpu.give_work(1, kEndless);
    while (rig.pf->scheduler.state != VGPU_SCHEDULER_SWITCHING) rig.gpu.run_for(kUs);
    ASSERT_EQ(rig.set_table({{1, 2000}, {2, 2000}}), 0);
    rig.gpu.run_for(100 * kUs);
    EXPECT_EQ(rig.get_info().table_generation, 2u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_TABLE).size(), 2u) << "not when a sole VF's 500 ms are over";
    const std::uint64_t before = rig.get_vf(2).service_ns;
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(6 * kMs);
    EXPECT_GE(rig.get_vf(2).service_ns - before, 1600 * kUs) << "a slice less the advance";
}

TEST(RunTable, AVfThatWaitsTooLongIsRescuedAndPaysForIt) {
    Rig rig({}, [](vgpu_pf_params& params) { params.max_gap_ms = 20; });
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 10000},
                             {1, 10000},
                             {1, 10000},
                             {1, 10000},
                             {1, 10000},
                             {1, 10000},
                             {1, 10000},
                             {1, 10000},
                             {2, 10000}}),
              0);
    rig.gpu.run_for(kSecond);
    std::uint64_t last = 0, gap = 0, runs[3] = {};
    rig.gpu.on_run = [&](const vgpu_hw_run_log_entry& entry) {
        runs[entry.vf] += entry.run_end_ns - entry.run_start_ns;
        if (entry.vf != 2) return;
        if (last != 0) gap = std::max(gap, entry.run_start_ns - last);
        last = entry.run_end_ns;
    };
    rig.gpu.run_for(20 * kSecond);
    EXPECT_LE(gap, 31 * kMs) << "the limit and one quantum";
    EXPECT_NEAR(static_cast<double>(runs[2]) / static_cast<double>(runs[1] + runs[2]), 1.0 / 9,
                0.003);
}

TEST(RunTable, AnEntryOfTheLogThatTheDeviceCouldNotWriteStopsNoAccounting) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 2; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_table({{1, 6000}, {2, 6000}}), 0);
    rig.gpu.run_for(100 * kMs);
    rig.gpu.lose_log_entries = 1;
    constexpr std::uint64_t kLongEnoughToFillTheLog = 2 * kSecond;
    rig.gpu.run_for(kLongEnoughToFillTheLog);
    const std::uint64_t before = rig.get_vf(1).service_ns;
    rig.gpu.run_for(kSecond);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(1).service_ns - before), 0.5e9, 0.02e9);
}

}  // namespace
}  // namespace vgpu::test
