// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/planner.h"

#include "daemon/service/scheduler/fluid.h"
#include "tests/unit/daemon/gps_oracle.h"

#include <gmock/gmock.h>

namespace vgpu::daemon::scheduler {
namespace {

using daemon::testing::GpsOracle;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSwitches = 100'000;
constexpr Limits kNoGapLimit{.max_gap_us = 100'000'000};
/// Rounding of the oracle's own floating point.
constexpr long double kSlackNs = 1.0L;

std::vector<Demand> claims_of(const std::vector<std::uint32_t>& weights) {
    std::vector<Demand> demands;
    for (std::uint32_t i = 0; i < weights.size(); ++i)
        demands.push_back({.vf = i + 1, .weight = weights[i]});
    return demands;
}

std::vector<Demand> random_claims(daemon::testing::Rng& random, std::uint32_t max_vfs,
                                  std::uint32_t max_weight) {
    std::vector<std::uint32_t> weights(1 + random() % max_vfs);
    for (std::uint32_t& weight : weights) weight = 1 + random() % max_weight;
    return claims_of(weights);
}

GpsOracle oracle_of(const std::vector<Demand>& demands) {
    GpsOracle oracle;
    for (const Demand& demand : demands) oracle.add(demand.vf, demand.weight);
    return oracle;
}

/// The table repeated without anybody planning again.
void run_cyclic(GpsOracle& oracle, const Plan& plan, int switches) {
    for (int i = 0; i < switches; ++i) {
        const Entry& entry = plan.entries[static_cast<std::size_t>(i) % plan.entries.size()];
        oracle.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
    }
}

long double quantum_ns(const Plan& plan) {
    return static_cast<long double>(plan.quantum_us) * 1000;
}

std::string words(const std::vector<Demand>& demands) {
    std::string text;
    for (const Demand& demand : demands) text += std::to_string(demand.weight) + " ";
    return text;
}

/// A cycle that fills the table has no room for the slices of what is paid back.
TEST(Planner, ATableThatPaysBackHasNoMoreEntriesThanThereMayBe) {
    daemon::testing::Rng random(11);
    const Limits limits{.max_gap_us = 10'000'000};
    for (int round = 0; round < 200; ++round) {
        std::vector<Demand> demands = random_claims(random, 8, 10'000);
        std::int64_t sum_ns = 0;
        for (Demand& demand : demands) {
            demand.quantum_us = 2000;
            demand.lag_ns = static_cast<std::int64_t>(random() % 6'000'000) - 3'000'000;
            sum_ns += demand.lag_ns;
        }
        demands.front().lag_ns -= sum_ns;
        const auto made = plan(demands, limits);
        if (!made) continue;
        EXPECT_LE(made->entries.size(), limits.max_entries) << words(demands);
    }
}

TEST(Planner, WeightsOneOneTwoFourMakeOneHyperperiodOfWholeQuanta) {
    const auto made = plan(claims_of({1, 1, 2, 4}), {});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->entries.size(), 8u);
    EXPECT_EQ(made->cycle_us, 48'000u);
    EXPECT_TRUE(made->is_exact);
    EXPECT_LE(made->worst_gap_us, 60'000u);
    for (const Entry& entry : made->entries) EXPECT_EQ(entry.quantum_us, 6000u);
}

/// 56 ms of slices between two of VF1 are within 60 ms; with what seven turns take they are not.
TEST(Planner, SlicesAreShortenedForTheTimeThatTurnsTakeBesideThem) {
    auto demands = claims_of({1, 1, 2, 4});
    for (Demand& demand : demands) demand.quantum_us = 8000;
    const auto without = plan(demands, {});
    ASSERT_TRUE(without);
    EXPECT_EQ(without->worst_gap_us, 56'000u);
    const auto with = plan(demands, {.overhead_us = 600});
    ASSERT_TRUE(with);
    EXPECT_TRUE(with->is_exact);
    EXPECT_LE(with->worst_gap_us + 8 * 600, 60'000u);
    EXPECT_GE(with->quantum_us, 7000u);
}

/// The same table as for turns that take nothing: the PF core does then what it can.
TEST(Planner, NothingIsRefusedForWhatTurnsTake) {
    auto demands = claims_of({1, 9});
    const Limits limits{.max_gap_us = 2000};
    const auto without = plan(demands, limits);
    ASSERT_TRUE(without);
    Limits slow = limits;
    slow.overhead_us = 1500;
    EXPECT_TRUE(check(demands, slow));
    const auto with = plan(demands, slow);
    ASSERT_TRUE(with);
    EXPECT_EQ(*with, *without);
}

TEST(Planner, NoEntryIsShorterThanThePfCoreTakesNorLongerThanAsked) {
    struct Case {
        std::uint32_t weights[2], quanta_us[2];
    };
    for (const Case& c : {Case{{1, 1}, {100, 130}}, Case{{3, 4}, {100, 100}},
                          Case{{7, 5}, {199, 100}}, Case{{1, 10}, {150, 101}}}) {
        auto demands = claims_of({c.weights[0], c.weights[1]});
        for (std::size_t i = 0; i < 2; ++i) demands[i].quantum_us = c.quanta_us[i];
        const auto made = plan(demands, kNoGapLimit);
        ASSERT_TRUE(made);
        EXPECT_TRUE(made->is_exact) << words(demands);
        for (const Entry& entry : made->entries) {
            EXPECT_GE(entry.quantum_us, kMinQuantumUs) << words(demands);
            EXPECT_LE(entry.quantum_us, c.quanta_us[entry.vf - 1]) << words(demands);
        }
    }
}

TEST(Planner, NoEntryIsShorterThanThePfCoreTakesForAnyWeightsAndQuanta) {
    daemon::testing::Rng random(17);
    for (int round = 0; round < 30; ++round) {
        auto demands = random_claims(random, 4, 20);
        for (Demand& demand : demands) demand.quantum_us = kMinQuantumUs + random() % 120;
        const auto made = plan(demands, kNoGapLimit);
        ASSERT_TRUE(made);
        for (const Entry& entry : made->entries)
            EXPECT_GE(entry.quantum_us, kMinQuantumUs) << words(demands);
    }
}

TEST(Planner, CyclicTableAloneKeepsLagWithinOneQuantum) {
    const auto demands = claims_of({1, 1, 2, 4});
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    GpsOracle oracle = oracle_of(demands);
    run_cyclic(oracle, *made, kSwitches);
    EXPECT_LE(oracle.worst_lag_ns(), quantum_ns(*made) + kSlackNs);
    for (const Demand& demand : demands) EXPECT_LT(oracle.share_error(demand.vf), 1e-4);
}

TEST(Planner, OrderIsCentredWhereTheWeightsAllowIt) {
    for (const auto& weights :
         {std::vector<std::uint32_t>{1, 1, 2, 4}, std::vector<std::uint32_t>{1, 1},
          std::vector<std::uint32_t>{1, 3}}) {
        const auto demands = claims_of(weights);
        const auto made = plan(demands, {});
        ASSERT_TRUE(made);
        GpsOracle oracle = oracle_of(demands);
        run_cyclic(oracle, *made, kSwitches);
        EXPECT_LE(oracle.worst_lag_ns(), quantum_ns(*made) * 0.5L + kSlackNs) << words(demands);
    }
}

TEST(Planner, CyclicTableOfRandomWeightsKeepsLagWithinOneQuantum) {
    daemon::testing::Rng random(7);
    for (int round = 0; round < 40; ++round) {
        const auto demands = random_claims(random, 16, 100);
        const auto made = plan(demands, kNoGapLimit);
        ASSERT_TRUE(made) << words(demands);
        EXPECT_TRUE(made->is_exact) << words(demands);
        EXPECT_TRUE(is_fair_table(made->entries, demands)) << words(demands);
        GpsOracle oracle = oracle_of(demands);
        run_cyclic(oracle, *made, kSwitches);
        EXPECT_LE(oracle.worst_lag_ns(), quantum_ns(*made) + kSlackNs) << words(demands);
    }
}

TEST(Planner, DefaultGapLimitHoldsForEveryPlanItAdmits) {
    daemon::testing::Rng random(11);
    int admitted = 0;
    for (int round = 0; round < 300; ++round) {
        const auto demands = random_claims(random, 16, round % 2 == 0 ? 40 : 10'000);
        const auto made = plan(demands, {});
        if (!made) continue;
        ++admitted;
        EXPECT_LE(made->worst_gap_us, 60'000u) << words(demands);
        EXPECT_LE(made->entries.size(), 1024u) << words(demands);
        EXPECT_LE(made->worst_lag_ns, std::int64_t{made->quantum_us} * 1000) << words(demands);
    }
    EXPECT_GT(admitted, 150);
}

TEST(Planner, ExtremeWeightsStillMakeATableThatFits) {
    daemon::testing::Rng random(13);
    for (int round = 0; round < 100; ++round) {
        const auto demands = random_claims(random, 16, kMaxWeight);
        const auto made = plan(demands, kNoGapLimit);
        ASSERT_TRUE(made) << words(demands);
        EXPECT_LE(made->entries.size(), 1024u);
        EXPECT_LE(made->worst_lag_ns, std::int64_t{made->quantum_us} * 1000) << words(demands);
        for (const Entry& entry : made->entries) EXPECT_GE(entry.quantum_us, kMinQuantumUs);
    }
}

TEST(Planner, SixteenEqualVfsGetShorterQuantaToKeepTheGap) {
    const auto made = plan(claims_of(std::vector<std::uint32_t>(16, 100)), {});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->entries.size(), 16u);
    EXPECT_LE(made->worst_gap_us, 60'000u);
    EXPECT_GE(made->quantum_us, 3900u);
}

TEST(Planner, WeightTooSmallForTheGapIsRefusedWithTheWeightThatFits) {
    const auto made = plan(claims_of({1, 10'000}), {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(made.error().cause, HasSubstr("VF 1 with weight 1 of 10001"));
    EXPECT_THAT(made.error().cause, HasSubstr("weight 17 or max_gap_ms 1250 would fit"));
    EXPECT_TRUE(plan(claims_of({17, 10'000}), {}));
    EXPECT_TRUE(plan(claims_of({1, 10'000}), {.max_gap_us = 1'250'000}));
}

TEST(Planner, CheckRefusesWhatPlanRefusesInTheSameWords) {
    daemon::testing::Rng random(29);
    int refused = 0;
    for (std::uint32_t round = 0; round < 200; ++round) {
        const auto demands = random_claims(random, 16, round % 2 == 0 ? 40 : 10'000);
        const Limits limits{.max_gap_us = 8'000u + 4'000u * (round % 14)};
        const auto made = plan(demands, limits);
        const auto checked = check(demands, limits);
        ASSERT_EQ(made.has_value(), checked.has_value()) << words(demands);
        if (made) continue;
        EXPECT_EQ(made.error().cause, checked.error().cause);
        ++refused;
    }
    EXPECT_GT(refused, 20);
    EXPECT_LT(refused, 180);
    EXPECT_TRUE(check({}, {}));
}

TEST(Planner, OwnQuantumIsKept) {
    auto demands = claims_of({1, 1});
    demands[0].quantum_us = 2000;
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(is_fair_table(made->entries, demands));
    for (const Entry& entry : made->entries)
        EXPECT_LE(entry.quantum_us, entry.vf == 1 ? 2000u : kDefaultQuantumUs);
}

TEST(Planner, OneVfIsOneEntry) {
    const auto made = plan(claims_of({5}), {});
    ASSERT_TRUE(made);
    EXPECT_THAT(made->entries, ElementsAre(Entry{1, kDefaultQuantumUs}));
    EXPECT_EQ(plan({}, {})->entries.size(), 0u);
}

TEST(Planner, LagsThatATableCanCarryLeaveItFair) {
    auto demands = claims_of({1, 1, 2, 4});
    demands[0].lag_ns = 2'000'000;
    demands[3].lag_ns = -2'000'000;
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    EXPECT_FALSE(made->corrects);
    EXPECT_TRUE(is_fair_table(made->entries, demands));
    EXPECT_LE(made->worst_lag_ns, 4'000'000);
}

TEST(Planner, LagsThatWouldStayLargeArePaidBack) {
    auto demands = claims_of({1, 1, 2, 4});
    demands[0].lag_ns = 5'500'000;
    demands[3].lag_ns = -5'500'000;
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->corrects);
    EXPECT_LE(made->worst_lag_ns, 6'000'000);
    Fluid fluid;
    for (const Demand& demand : demands) fluid.join(demand.vf, demand.weight);
    for (const Entry& entry : made->entries)
        fluid.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(1)), -5.5e6, 2e3);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(4)), 5.5e6, 2e3);
}

TEST(Planner, LagBeyondAQuantumIsPaidBackInOneTableIfHalfAPartSuffices) {
    auto demands = claims_of({1, 1, 2, 4});
    demands[0].lag_ns = 9'000'000;
    demands[3].lag_ns = -9'000'000;
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->corrects);
    EXPECT_FALSE(made->is_exact);
    EXPECT_LE(made->worst_gap_us, 60'000u);
    Fluid fluid;
    for (const Demand& demand : demands) fluid.join(demand.vf, demand.weight);
    for (const Entry& entry : made->entries)
        fluid.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(1)), -9e6, 1e4);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(4)), 9e6, 1e4);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(2)), 0, 1e4);
}

/// Seen on a busy host: every table that repaid had one slice more of somebody, with which another
/// waited longer than it may, and a VF kept two quanta of the others' time for ever.
TEST(Planner, LagsArePaidBackAlsoWhereTheSettledTableHardlyKeepsTheGap) {
    daemon::testing::Rng random(41);
    for (int round = 0; round < 60; ++round) {
        auto demands = round == 0 ? claims_of({1, 1, 2, 4}) : random_claims(random, 8, 16);
        if (demands.size() < 2) continue;
        for (Demand& demand : demands) demand.quantum_us = 8000;
        const auto settled = plan(demands, {.max_gap_us = 2'000'000});
        ASSERT_TRUE(settled);
        const Limits limits{.max_gap_us = static_cast<std::uint32_t>(settled->worst_gap_us + 4000)};
        Fluid fluid;
        for (const Demand& demand : demands) fluid.join(demand.vf, demand.weight);
        fluid.serve(demands.front().vf, 26'000'000);
        for (Demand& demand : demands) demand.lag_ns = fluid.lag_ns(demand.vf);
        const auto made = plan(demands, limits);
        ASSERT_TRUE(made) << words(demands);
        if (-fluid.lag_ns(demands.front().vf) <= 8'000'000) continue;
        EXPECT_TRUE(made->corrects) << words(demands);
        EXPECT_LE(made->worst_gap_us, limits.max_gap_us) << words(demands);
    }
}

/// A host that stood still for a second made one slice that long. Seen with two guests: the tables
/// ordered by such a lag gave one VF 128 ms and then the other 384 ms, for ever.
TEST(Planner, LagOfManyQuantaIsPaidBackSoonAndNobodyWaitsLongerMeanwhile) {
    daemon::testing::Rng random(23);
    for (int round = 0; round < 40; ++round) {
        auto demands = round == 0 ? claims_of({1, 3}) : random_claims(random, 8, 16);
        const Limits limits{.max_gap_us = 200'000};
        if (!plan(demands, limits)) continue;
        Fluid fluid;
        for (const Demand& demand : demands) fluid.join(demand.vf, demand.weight);
        const std::uint32_t culprit = demands[random() % demands.size()].vf;
        fluid.serve(culprit, 1'000'000'000);
        std::int64_t passed_us = 0;
        const auto largest = [&] {
            std::int64_t lag = 0;
            for (const Demand& demand : demands)
                lag = std::max(lag, std::abs(fluid.lag_ns(demand.vf)));
            return lag;
        };
        std::int64_t bound_ns = 0;
        do {
            for (Demand& demand : demands) demand.lag_ns = fluid.lag_ns(demand.vf);
            const auto made = plan(demands, limits);
            ASSERT_TRUE(made);
            ASSERT_LE(made->worst_gap_us, limits.max_gap_us) << words(demands);
            bound_ns = static_cast<std::int64_t>(quantum_ns(*made));
            for (const Entry& entry : made->entries)
                fluid.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
            passed_us += static_cast<std::int64_t>(made->cycle_us);
            // what the others were owed was a second in sum; who owes pays half of its part
            ASSERT_LT(passed_us, 60'000'000) << words(demands);
        } while (largest() > bound_ns);
    }
}

/// A product-like loop: measured lags go into a new table every so often, each table is cut off
/// anywhere. The bound must hold all the same.
TEST(Planner, ReplanningAnywhereFromMeasuredLagKeepsLagWithinOneQuantum) {
    daemon::testing::Rng random(17);
    for (int round = 0; round < 20; ++round) {
        auto demands = round == 0 ? claims_of({1, 1, 2, 4}) : random_claims(random, 16, 16);
        GpsOracle oracle = oracle_of(demands);
        Fluid fluid;
        for (const Demand& demand : demands) fluid.join(demand.vf, demand.weight);
        long double quantum = 0;
        for (int done = 0; done < kSwitches;) {
            for (Demand& demand : demands) demand.lag_ns = fluid.lag_ns(demand.vf);
            const auto made = plan(demands, kNoGapLimit);
            ASSERT_TRUE(made);
            quantum = std::max(quantum, quantum_ns(*made));
            // a table that pays back is replaced after one cycle
            const std::size_t cycles = made->corrects ? 1 : 2;
            const std::size_t run = 1 + random() % (cycles * made->entries.size());
            for (std::size_t i = 0; i < run; ++i, ++done) {
                const Entry& entry = made->entries[i % made->entries.size()];
                oracle.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
                fluid.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
            }
        }
        EXPECT_LE(oracle.worst_lag_ns(), quantum + kSlackNs) << words(demands);
        for (const Demand& demand : demands) EXPECT_LT(oracle.share_error(demand.vf), 1e-3);
    }
}

TEST(Planner, FairTableIsDistinguishedFromAnUnfairOne) {
    const auto demands = claims_of({1, 2});
    const std::vector<Entry> fair{{1, 3000}, {2, 6000}}, unfair{{1, 6000}, {2, 6000}},
        foreign{{1, 3000}, {3, 6000}};
    EXPECT_TRUE(is_fair_table(fair, demands));
    EXPECT_FALSE(is_fair_table(unfair, demands));
    EXPECT_FALSE(is_fair_table(foreign, demands));
}

TEST(Reserve, HoldsThoseThatMayWakeWithTheirPlannedSlice) {
    std::vector<Demand> demands{{.vf = 1}, {.vf = 2}, {.vf = 3}, {.vf = 4}};
    demands[2].is_asleep = demands[2].may_wake = true;
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    EXPECT_EQ(reserve_of(*made, demands), (std::vector<Entry>{{3, 6000}}));
}

TEST(Reserve, IsEmptyWhenEverybodyWorksOrNobodyElseIsThere) {
    std::vector<Demand> demands{{.vf = 1}, {.vf = 2}};
    EXPECT_TRUE(reserve_of(*plan(demands, {}), demands).empty());
    const std::vector<Demand> alone{{.vf = 1, .may_wake = true}};
    EXPECT_TRUE(reserve_of(*plan(alone, {}), alone).empty());
}

TEST(Reserve, DebtIsTakenOffAndAShortRestIsNoPlace) {
    std::vector<Demand> demands{{.vf = 1}, {.vf = 2}, {.vf = 3}};
    demands[1].may_wake = demands[2].may_wake = true;
    demands[1].debt_ns = 2'000'000;
    demands[2].debt_ns = 5'950'000;
    const auto made = plan(demands, {});
    ASSERT_TRUE(made);
    EXPECT_EQ(reserve_of(*made, demands), (std::vector<Entry>{{2, 4000}}));
}

TEST(Reserve, AllWakingAtOnceLeaveNobodyMoreThanHalfASliceBehind) {
    daemon::testing::Rng rng(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<Demand> demands;
        const std::uint32_t vfs = 2 + static_cast<std::uint32_t>(rng() % 15);
        std::uint64_t weights = 0;
        for (std::uint32_t vf = 1; vf <= vfs; ++vf) {
            Demand demand{.vf = vf, .weight = 10 + static_cast<std::uint32_t>(rng() % 200)};
            demand.is_asleep = demand.may_wake = rng() % 2 == 0;
            weights += demand.weight;
            demands.push_back(demand);
        }
        const auto made = plan(demands, {});
        if (!made) continue;
        const auto reserve = reserve_of(*made, demands);
        for (const Demand& demand : demands) {
            std::uint64_t others_us = 0;
            for (const Entry& entry : reserve)
                if (entry.vf != demand.vf) others_us += entry.quantum_us;
            EXPECT_LE(others_us * demand.weight, made->quantum_us * weights / 2 + weights)
                << "VF " << demand.vf << " of " << vfs;
        }
    }
}

}  // namespace
}  // namespace vgpu::daemon::scheduler
