// SPDX-License-Identifier: MIT
//
// Contracts as the scheduler keeps them with nobody above it, on a virtual clock: reservations in
// every period, priority classes, strict slots, terms that change (caps: run_cap_test.cpp). What
// was promised is checked against the device's run log by arithmetic that shares nothing with the
// core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/unit/core/contracts.h"
#include "tests/unit/core/record.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::HasSubstr;

// ---- reservations

TEST(Reservation, GetsItsBudgetInEveryPeriodBesideNeighboursThatOverrun) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    std::mt19937_64 random(7);
    rig.gpu.overrun = [&](std::uint32_t vf) -> std::uint64_t {
        return vf == 1 ? 0 : random() % 3 * kMs;
    };
    constexpr std::uint64_t kBudget = 3 * kMs, kPeriod = 10 * kMs;
    rig.gpu.vf(1).work_ns = 0;
    ASSERT_EQ(rig.set_contracts({{1, 1000}, {2, 9000}, {3, 9000}, {4, 9000}},
                                {{1, reservation(kBudget, kPeriod)}}),
              0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    const std::uint64_t from = rig.gpu.now();
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(20 * kSecond);
    for (std::uint64_t at = from; at + kPeriod <= rig.gpu.now(); at += kPeriod)
        ASSERT_GE(record.service(1, at, at + kPeriod), kBudget - 20 * kUs)
            << "period " << (at - from) / kPeriod;
    // beside it, its entries: 1 of 28 of what is left; the others overrun by a ms on average
    EXPECT_NEAR(record.share(1), 0.3 + 0.7 / 28, 0.01);
    EXPECT_NEAR(record.share(2), record.share(3), 0.01);
    const vgpu_pf_vf one = rig.get_vf(1);
    EXPECT_NEAR(static_cast<double>(one.reserved_service_ns), 6e9, 0.03e9);
}

TEST(Reservation, OfAVfThatWakesPreemptsAtOnceAndTheCutSliceKeepsItsLength) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.provision(3);
    rig.load_driver(3);
    ASSERT_EQ(rig.set_contracts({{1, 10000}, {2, 10000}, {3, 10000}},
                                {{3, reservation(2 * kMs, 20 * kMs)}}),
              0);
    rig.gpu.run_for(50 * kMs);
    while (rig.gpu.loaded() != 1) rig.gpu.run_for(100 * kUs);
    while (rig.gpu.loaded() != 2) rig.gpu.run_for(100 * kUs);
    Record record(rig);
    rig.gpu.give_work(3, 500 * kUs);
    rig.gpu.run_for(100 * kUs);
    EXPECT_EQ(rig.gpu.loaded(), 3u);
    rig.gpu.run_for(600 * kUs);
    EXPECT_EQ(rig.gpu.loaded(), 2u) << "the cut slice is resumed";
    while (rig.gpu.loaded() == 2) rig.gpu.run_for(100 * kUs);
    EXPECT_NEAR(static_cast<double>(record.service(2)), 10e6, 0.2e6);
    const auto runs = rig.events(VGPU_PF_EVENT_RUN, 3);
    ASSERT_FALSE(runs.empty());
    EXPECT_NEAR(static_cast<double>(runs.back().reserved_ns), 500e3, 10e3);
}

TEST(Reservation, TakesNothingOffTheVfsOwnEntries) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, reservation(2 * kMs, 10 * kMs)}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(20 * kSecond);
    EXPECT_NEAR(record.share(1), 0.2 + 0.8 / 2, 0.005);
}

TEST(Reservation, AServerThatHasUsedItsBudgetUpWaitsForItsNextPeriod) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.vf(1).work_ns = 0;
    // one entry of VF1 in a second: nearly all it gets is reserved
    std::vector<vgpu_pf_run_entry> entries(100, vgpu_pf_run_entry{2, 10000});
    entries.push_back({1, 100});
    ASSERT_EQ(rig.set_contracts(entries, {{1, reservation(2 * kMs, 20 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(10 * kSecond);
    for (std::size_t i = 0; i + 1 < record.of(1).size(); ++i)
        EXPECT_GE(record.of(1)[i].ns(), 90 * kUs);
    EXPECT_NEAR(record.share(1), 0.1, 0.002);
}

TEST(Reservation, BudgetsAheadServeABurstAtOnceAndNoMoreThanThat) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    rig.load_driver(2);
    std::vector<vgpu_pf_run_entry> entries(100, vgpu_pf_run_entry{1, 10000});
    entries.push_back({2, 100});
    ASSERT_EQ(rig.set_contracts(entries, {{2, reservation(kMs, 10 * kMs, 4)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    rig.gpu.give_work(2, 5 * kMs);
    rig.gpu.run_for(6 * kMs);
    EXPECT_EQ(rig.gpu.vf(2).work_ns, 0u) << "its budget and four ahead";
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(2)), 1e9 + 4e6, 0.02e9);
}

TEST(Reservation, ManyServersMeetTheirDeadlinesUpToNineTenthsOfTheEngine) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        const auto rng = [&](std::uint64_t min, std::uint64_t max) {
            return std::uniform_int_distribution<std::uint64_t>(min, max)(random);
        };
        ModelGpu::Options options;
        options.total_vfs = 8;
        Rig rig(options);
        std::vector<vgpu_pf_run_entry> entries;
        std::map<std::uint32_t, vgpu_pf_contract> contracts;
        std::map<std::uint32_t, std::uint64_t> woken;
        double left = 0.88;
        for (std::uint32_t vf = 1; vf <= 8; ++vf) {
            rig.make_busy(vf);
            entries.push_back({vf, static_cast<std::uint32_t>(rng(500, 8000))});
            if (vf > 5) continue;
            rig.gpu.vf(vf).work_ns = 0;
            const std::uint64_t period = rng(4, 60) * kMs;
            const double part = vf == 5 ? left : left * static_cast<double>(rng(1, 5)) / 10;
            left -= part;
            // two switches of 8 us for each budget, and one that cannot be cut
            const double overhead = 40e3 / static_cast<double>(period);
            if (part < overhead + 0.03) continue;
            const auto budget =
                static_cast<std::uint64_t>((part - overhead) * static_cast<double>(period));
            contracts[vf] = reservation(std::max<std::uint64_t>(budget, 100 * kUs), period);
        }
        ASSERT_EQ(rig.set_contracts(entries, contracts), 0) << rig.message();
        rig.gpu.run_for(kSecond);
        Record record(rig);
        for (const auto& [vf, contract] : contracts) {
            rig.gpu.run_for(rng(0, 20 * kMs));
            woken[vf] = rig.gpu.now();
            rig.gpu.give_work(vf, kEndless);
        }
        rig.gpu.run_for(4 * kSecond);
        for (const auto& [vf, contract] : contracts)
            for (std::uint64_t at = woken[vf]; at + contract.period_ns <= rig.gpu.now();
                 at += contract.period_ns)
                ASSERT_GE(record.service(vf, at, at + contract.period_ns),
                          contract.budget_ns - 30 * kUs)
                    << "VF" << vf << " period " << (at - woken[vf]) / contract.period_ns << " seed "
                    << seed;
    }
}

TEST(Reservation, IsServedFromTheTokensThatItsCapKeepsBackForIt) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    vgpu_pf_contract both = reservation(2 * kMs, 20 * kMs);
    both.rate_ppm = 150'000;
    both.burst_ns = 6 * kMs;
    rig.gpu.vf(1).work_ns = 0;
    ASSERT_EQ(rig.set_contracts({{1, 4000}, {2, 4000}}, {{1, both}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    const std::uint64_t from = rig.gpu.now();
    rig.gpu.give_work(1, kEndless);
    rig.gpu.run_for(10 * kSecond);
    for (std::uint64_t at = from; at + 20 * kMs <= rig.gpu.now(); at += 20 * kMs)
        ASSERT_GE(record.service(1, at, at + 20 * kMs), 2 * kMs - 20 * kUs);
    EXPECT_NEAR(record.share(1), 0.15, 0.002);
    EXPECT_LE(record.max_beyond(1, 150'000), 6.0e6 + 1000);
}

TEST(Reservation, AddedWhileTheTableCyclesHoldsFromThenOn) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 9000}, {3, 9000}}), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(
        rig.set_contracts({{1, 1000}, {2, 9000}, {3, 9000}}, {{1, reservation(5 * kMs, 10 * kMs)}}),
        0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(5 * kSecond);
    EXPECT_NEAR(record.share(1), 0.5 + 0.5 / 19, 0.01);
    ASSERT_EQ(rig.set_table({{1, 1000}, {2, 9000}, {3, 9000}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record after(rig);
    rig.gpu.run_for(5 * kSecond);
    EXPECT_NEAR(after.share(1), 1.0 / 19, 0.005);
}

TEST(Reservation, WithAShorterPeriodThanBeforeDoesNotWaitForTheEndOfTheLongOne) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    vgpu_pf_contract low = reservation(kSecond, 10 * kSecond);
    low.priority_class = 2;
    ASSERT_EQ(rig.set_contracts({{1, 5000}, {2, 5000}}, {{2, low}}), 0);
    rig.gpu.run_for(3 * kSecond);
    Record before(rig);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(before.service(2), 0u) << "its budget is used up";
    low.budget_ns = kMs;
    low.period_ns = 10 * kMs;
    ASSERT_EQ(rig.set_contracts({{1, 5000}, {2, 5000}}, {{2, low}}), 0);
    Record record(rig);
    rig.gpu.run_for(30 * kMs);
    EXPECT_GE(record.service(2), kMs - 20 * kUs);
    rig.gpu.run_for(kSecond);
    EXPECT_NEAR(record.share(2), 0.1, 0.005) << "and no more than is reserved";
}

TEST(Reservation, DoesNotDisturbSharesWhereTablesFollowEachOther) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.make_busy(3);
    const std::map<std::uint32_t, vgpu_pf_contract> contracts = {
        {3, reservation(4 * kMs, 10 * kMs)}};
    ASSERT_EQ(rig.set_contracts({{1, 1000}, {2, 1000}, {3, 1000}}, contracts), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    for (int i = 0; i < 100; ++i) {
        auto table = std::make_unique<vgpu_pf_run_table>();
        ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, *table), 0);
        ++table->generation;
        rig.gpu.run_for(45 * kMs);
        ASSERT_EQ(rig.request(VGPU_PF_OP_SET_RUN_TABLE, *table), 0);
        rig.gpu.run_for(3 * kMs);
    }
    EXPECT_NEAR(record.share(1), 0.2, 0.002);
    EXPECT_NEAR(record.share(2), 0.2, 0.002);
    EXPECT_NEAR(record.share(3), 0.6, 0.002);
}

// ---- priority classes

TEST(PriorityClass, ALowerOneRunsOnlyWhileNobodyOfAHigherOneHasWork) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    rig.gpu.vf(1).work_ns = 0;
    ASSERT_EQ(
        rig.set_contracts({{1, 2000}, {2, 2000}, {3, 2000}, {4, 4000}},
                          {{2, priority_class(1)}, {3, priority_class(2)}, {4, priority_class(2)}}),
        0);
    rig.gpu.vf(2).work_ns = 0;
    rig.gpu.run_for(kSecond);
    Record record(rig);
    const std::uint64_t from = rig.gpu.now();
    std::vector<Interval> first, second;
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t at = rig.gpu.now();
        rig.gpu.give_work(2, 7 * kMs);
        rig.gpu.run_for(3 * kMs);
        rig.gpu.give_work(1, 5 * kMs);
        rig.gpu.run_for(30 * kMs);
        EXPECT_EQ(rig.gpu.vf(1).work_ns, 0u);
        EXPECT_EQ(rig.gpu.vf(2).work_ns, 0u);
        first.push_back({at + 3 * kMs, at + 8 * kMs});
        second.push_back({at, at + 12 * kMs});
    }
    constexpr std::uint64_t kReaction = 40 * kUs;
    for (const Interval& busy : first)
        for (std::uint32_t vf = 2; vf <= 4; ++vf)
            EXPECT_LE(record.service(vf, busy.start + kReaction, busy.end), 0u) << "VF" << vf;
    for (const Interval& busy : second)
        for (std::uint32_t vf = 3; vf <= 4; ++vf)
            EXPECT_LE(record.service(vf, busy.start + kReaction, busy.end), 0u) << "VF" << vf;
    EXPECT_NEAR(static_cast<double>(record.service(4, from, kEndless)) /
                    static_cast<double>(record.service(3, from, kEndless)),
                2.0, 0.03)
        << "in the priority class the weights hold, however often it was interrupted";
}

TEST(PriorityClass, OneThatComesAndGoesDoesNotStarveAnEntryOfAnother) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    rig.gpu.vf(3).work_ns = 0;
    // the high one wakes in every slice of VF1, before VF2 has its slice
    ASSERT_EQ(
        rig.set_contracts({{1, 5000}, {2, 5000}, {3, 1000}},
                          {{1, priority_class(1)}, {2, priority_class(1)}, {3, priority_class(0)}}),
        0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    for (int i = 0; i < 2000; ++i) {
        if (rig.gpu.loaded() == 1) rig.gpu.give_work(3, 300 * kUs);
        rig.gpu.run_for(2 * kMs);
    }
    EXPECT_NEAR(static_cast<double>(record.service(1)) / static_cast<double>(record.service(2)),
                1.0, 0.01);
}

TEST(PriorityClass, AReservationIsServedBeforeAHigherPriorityClass) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    vgpu_pf_contract low = reservation(kMs, 10 * kMs);
    low.priority_class = 2;
    ASSERT_EQ(rig.set_contracts({{1, 5000}, {2, 5000}}, {{2, low}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_NEAR(record.share(2), 0.1, 0.002) << "what is reserved, and no more";
}

TEST(PriorityClass, AHigherOneThatIsOutOfTokensLetsTheLowerOnesIn) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    vgpu_pf_contract low = priority_class(1);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(300'000, 2 * kMs)}, {2, low}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(10 * kSecond);
    EXPECT_NEAR(record.share(1), 0.3, 0.005);
    EXPECT_NEAR(record.share(2), 0.7, 0.005);
}

// ---- strict slots

TEST(Strict, AnIdleVfKeepsItsSlotsAndTheOthersTheirOwn) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.provision(3);
    rig.load_driver(3);
    ASSERT_EQ(rig.set_contracts({{1, 1000}, {3, 2000}, {2, 1000}}, {{3, strict()}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(4 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(1)), 1e9, 0.03e9);
    EXPECT_NEAR(static_cast<double>(record.service(2)), 1e9, 0.03e9);
}

TEST(Strict, IsAMatterOfTheVfAloneAndOthersAreStillPassedOver) {
    Rig rig;
    rig.make_busy(1);
    for (std::uint32_t vf = 2; vf <= 3; ++vf) {
        rig.provision(vf);
        rig.load_driver(vf);
    }
    ASSERT_EQ(rig.set_contracts({{1, 1000}, {2, 1000}, {3, 1000}}, {{3, strict()}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(4 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(1)), 2e9, 0.05e9);
}

// ---- the table

TEST(Contracts, ReadBackAsSetAndOutliveTheCore) {
    Rig rig;
    vgpu_pf_contract all = reservation(2 * kMs, 20 * kMs, 3);
    all.rate_ppm = 250'000;
    all.burst_ns = 9 * kMs;
    all.priority_class = 2;
    all.flags = VGPU_PF_CONTRACT_STRICT;
    ASSERT_EQ(rig.set_contracts({{1, 500}, {2, 700}}, {{2, all}, {4, priority_class(1)}}), 0);
    const auto check = [&] {
        vgpu_pf_run_table table{};
        ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
        EXPECT_EQ(table.count, 2u);
        EXPECT_EQ(table.entries[1].quantum_us, 700u);
        EXPECT_EQ(table.contracts[1].budget_ns, 2 * kMs);
        EXPECT_EQ(table.contracts[1].period_ns, 20 * kMs);
        EXPECT_EQ(table.contracts[1].ahead, 3u);
        EXPECT_EQ(table.contracts[1].rate_ppm, 250'000u);
        EXPECT_EQ(table.contracts[1].burst_ns, 9 * kMs);
        EXPECT_EQ(table.contracts[1].priority_class, 2u);
        EXPECT_EQ(table.contracts[1].flags, static_cast<std::uint32_t>(VGPU_PF_CONTRACT_STRICT));
        EXPECT_EQ(table.contracts[3].priority_class, 1u);
        EXPECT_EQ(table.contracts[0].priority_class, 0u);
    };
    check();
    rig.gpu.run_for(kMs);
    rig.restart_core();
    check();
}

TEST(Contracts, ATableWithoutThemIsWrittenAsBeforeAndReadBackWithNone) {
    Rig rig;
    ASSERT_EQ(rig.set_contracts({{1, 500}}, {{1, cap(1000, kMs)}}), 0);
    ASSERT_EQ(rig.set_table({{1, 500}}), 0);
    rig.gpu.run_for(kMs);
    rig.restart_core();
    vgpu_pf_run_table table{};
    ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.generation, 2u);
    EXPECT_EQ(table.contracts[0].rate_ppm, 0u);
}

TEST(Contracts, AStructOfAClientThatKnowsNoneMeansNone) {
    Rig rig;
    EXPECT_EQ(vgpu_pf_request_traits(VGPU_PF_OP_SET_RUN_TABLE)->bytes, sizeof(vgpu_pf_run_table));
    EXPECT_EQ(
        offsetof(vgpu_pf_run_table, contracts),
        offsetof(vgpu_pf_run_table, entries) + VGPU_PF_TABLE_ENTRIES * sizeof(vgpu_pf_run_entry))
        << "they lie behind everything that older clients send";
}

TEST(Contracts, NonsenseIsRefusedWithItsVf) {
    Rig rig;
    const auto refused = [&](std::uint32_t vf, const vgpu_pf_contract& contract) {
        EXPECT_EQ(rig.set_contracts({{1, 500}}, {{vf, contract}}), -EINVAL);
        return rig.message();
    };
    EXPECT_EQ(refused(1, reservation(20 * kMs, 10 * kMs)),
              "run table: VF1 has a budget of 20000000 ns in a period of 10000000 ns; a budget is "
              "from 100 us to its period, a period at most 10 s");
    EXPECT_THAT(refused(2, reservation(50 * kUs, 10 * kMs)),
                HasSubstr("VF2 has a budget of 50000"));
    EXPECT_THAT(refused(2, reservation(kMs, 11 * kSecond)), HasSubstr("a period at most 10 s"));
    EXPECT_THAT(refused(2, reservation(kMs, 10 * kMs, 17)), HasSubstr("has ahead 17; at most 16"));
    EXPECT_THAT(refused(2, reservation(0, 10 * kMs)), HasSubstr("but no budget"));
    EXPECT_THAT(refused(3, cap(1'000'001, kMs)), HasSubstr("a cap of 1000001 ppm; 1 to 1000000"));
    EXPECT_THAT(refused(3, cap(0, kMs)), HasSubstr("a cap of 0 ppm"));
    EXPECT_THAT(refused(3, cap(1000, 99 * kUs)), HasSubstr("a burst of 99000 ns"));
    EXPECT_THAT(refused(3, cap(1000, 11 * kSecond)), HasSubstr("to 10 s"));
    vgpu_pf_contract both = reservation(2 * kMs, 20 * kMs);
    both.rate_ppm = 200'000;
    both.burst_ns = 2 * kMs;
    EXPECT_THAT(refused(3, both), HasSubstr("2100000 ns (its budget + 100 us) to 10 s"));
    EXPECT_THAT(refused(4, priority_class(3)), HasSubstr("VF4 is in priority class 3; 0 to 2"));
    vgpu_pf_contract unknown{};
    unknown.flags = 4;
    EXPECT_THAT(refused(4, unknown), HasSubstr("VF4 has unknown flags 0x4"));
    vgpu_pf_contract slow{};
    slow.preempt_timeout_us = 100'000'001;
    EXPECT_THAT(refused(4, slow), HasSubstr("preempt_timeout_us of 100000001"));
    EXPECT_EQ(refused(5, priority_class(1)), "run table: a contract names VF5; VFs are 1 to 4");
    EXPECT_EQ(rig.set_contracts({{1, 500}}, {{1, reservation(6 * kMs, 10 * kMs)},
                                             {2, reservation(5 * kMs, 10 * kMs)}}),
              -EINVAL);
    EXPECT_THAT(rig.message(), HasSubstr("reservations take 1100000 ppm of the engine"));
    EXPECT_EQ(rig.get_info().table_generation, 0u);
}

TEST(Contracts, ALongerPreemptTimeoutHoldsWithTheNextTable) {
    for (const std::uint32_t timeout_us : {0u, 400'000u}) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        vgpu_pf_contract patient{};
        patient.preempt_timeout_us = timeout_us;
        ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, patient}}), 0);
        rig.gpu.run_for(20 * kMs);
        rig.gpu.faults.push_back({GPUIOV_CMD_IDLE, 1, FaultKind::Late, 200 * kMs});
        rig.gpu.run_for(2 * kSecond);
        EXPECT_EQ(rig.get_vf(1).hangs, timeout_us == 0 ? 1u : 0u) << "100 ms as provisioned";
    }
}

/// Everything at once, at random, terms changing: nobody with work and without a cap waits for
/// ever, the core neither idles nor polls, and caps hold from their tables on.
TEST(Contracts, AnyMixtureKeepsTheEngineAtWork) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        const auto rng = [&](std::uint64_t min, std::uint64_t max) {
            return std::uniform_int_distribution<std::uint64_t>(min, max)(random);
        };
        Rig rig;
        for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
        for (int change = 0; change < 20; ++change) {
            std::vector<vgpu_pf_run_entry> entries;
            std::map<std::uint32_t, vgpu_pf_contract> contracts;
            for (std::uint32_t vf = 1; vf <= 4; ++vf) {
                entries.push_back({vf, static_cast<std::uint32_t>(rng(100, 5000))});
                vgpu_pf_contract one{};
                if (rng(0, 1) != 0)
                    one = reservation(rng(100, 2000) * kUs, rng(10, 40) * kMs,
                                      static_cast<std::uint32_t>(rng(0, 4)));
                if (vf < 4 && rng(0, 1) != 0) {
                    one.rate_ppm = static_cast<std::uint32_t>(rng(200'000, 600'000));
                    one.burst_ns = one.budget_ns + rng(100, 20'000) * kUs;
                }
                one.flags = vf < 4 && rng(0, 4) == 0 ? VGPU_PF_CONTRACT_STRICT : 0;
                contracts[vf] = one;
            }
            ASSERT_EQ(rig.set_contracts(entries, contracts), 0) << rig.message();
            rig.gpu.run_for(50 * kMs);
            Record record(rig);
            const std::uint64_t from = rig.gpu.now();
            const std::uint64_t switches = rig.gpu.total_switches();
            rig.gpu.run_for(500 * kMs);
            std::uint64_t served = 0;
            for (std::uint32_t vf = 1; vf <= 4; ++vf)
                served += record.service(vf, from, rig.gpu.now());
            const std::uint64_t spent = (rig.gpu.total_switches() - switches) * 6 * rig.gpu.step_ns;
            // VF4 has no cap and always has work; the run in the engine is not logged yet
            EXPECT_GE(served + spent + 500 * kMs / 10, 500 * kMs) << "seed " << seed;
            EXPECT_GT(record.service(4, from, rig.gpu.now()), 0u) << "seed " << seed;
            for (const auto& [vf, contract] : contracts) {
                if (contract.rate_ppm == 0) continue;
                EXPECT_LE(record.max_beyond(vf, contract.rate_ppm),
                          static_cast<double>(contract.burst_ns) + 1000)
                    << "VF" << vf << " seed " << seed;
            }
        }
    }
}

}  // namespace
}  // namespace vgpu::test
