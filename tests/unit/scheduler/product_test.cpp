// SPDX-License-Identifier: MIT
//
// What is shipped (planner, run tables, PF core) in virtual time, against the fluid oracle.
#include "tests/unit/scheduler/product_runs.h"

namespace vgpu::simulator {
namespace {

using ::testing::HasSubstr;

constexpr double kRequestMs = 2;

/// N VFs with random weights 1..10 and requests of 2 ms, some with bursts.
Simulation random_mix(std::uint32_t vfs, std::uint64_t seed, double bursty_part) {
    Rng rng(seed);
    std::string list;
    for (std::uint32_t i = 0; i < vfs; ++i) {
        const bool is_bursty = rng.chance(bursty_part);
        const std::string work = fmt::format(
            R"(, "work": {{"arrivals": "bursty", "work_ms": {:.3f}, "period_ms": {:.3f}}})",
            static_cast<double>(rng.between(50, 5000)) / 1000,
            static_cast<double>(rng.between(1, 10) * vfs));
        list += fmt::format(R"({}{{"weight": {}, "quantum_ms": 2, "max_gap_ms": 2000{}}})",
                            i == 0 ? "" : ", ", 100 * rng.between(1, 10), is_bursty ? work : "");
    }
    return scenario(list, fmt::format(R"(, "seed": {})", seed));
}

TEST(Product, BackloggedVfsStayWithinOneRequestOfTheirIdealShares) {
    for (const std::uint32_t vfs : {1u, 2u, 5u, 8u, 16u})
        for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
            GpsFluid oracle;
            const Figures figures = figures_of(random_mix(vfs, seed, 0), &oracle);
            EXPECT_LE(worst_lag_ms(oracle), kRequestMs) << vfs << " VFs, seed " << seed;
            EXPECT_EQ(figures.idle_with_work_ns / 1'000'000, 0) << vfs << " VFs, seed " << seed;
        }
}

TEST(Product, SharesFollowWeights) {
    const Figures figures = figures_of(
        scenario(R"({"weight": 300, "quantum_ms": 2}, {"weight": 100, "quantum_ms": 2})"));
    EXPECT_NEAR(share(figures, 1), 0.75, 0.001);
}

TEST(Product, AReservedVfMeetsItsDeadlinesBesideBackloggedOnes) {
    const Figures figures = figures_of(scenario(R"(
        {"count": 12, "quantum_ms": 2, "max_gap_ms": 1000},
        {"count": 4, "quantum_ms": 2, "max_gap_ms": 1000, "min_pct": 11, "latency_ms": 20,
         "work": {"arrivals": "periodic", "work_ms": 2, "period_ms": 20, "deadline_ms": 20}})"));
    for (std::uint32_t vf = 13; vf <= 16; ++vf) {
        EXPECT_GE(figures.vfs[vf].jobs, 145u);
        EXPECT_EQ(figures.vfs[vf].missed, 0u);
    }
}

TEST(Product, AReservationKeepsTheGapOfAVfInALowerPriorityClassAfterABurst) {
    const Figures figures = figures_of(scenario(R"(
        {"min_pct": 77, "latency_ms": 60, "max_gap_ms": 1000}, {"max_gap_ms": 10000},
        {"priority_class": "low", "min_pct": 10, "latency_ms": 10, "max_gap_ms": 20,
         "work": {"arrivals": "bursty", "work_ms": 8, "period_ms": 80}})"));
    EXPECT_LE(static_cast<double>(figures.vfs[3].longest_wait_ns) / 1e6, 20.0);
}

TEST(Product, ACapIsKeptAndWhatItLeavesIsUsed) {
    const Figures figures = figures_of(scenario(R"(
        {"weight": 300, "quantum_ms": 2, "max_pct": 30, "burst_ms": 10}, {"quantum_ms": 2})"));
    const double max_ns = 0.30 * static_cast<double>(figures.elapsed_ns) + 10e6;
    EXPECT_LE(static_cast<double>(figures.vfs[1].service_ns), max_ns);
    EXPECT_GE(static_cast<double>(figures.vfs[1].service_ns), 0.95 * max_ns);
    EXPECT_EQ(figures.idle_with_work_ns / 1'000'000, 0);
}

TEST(Product, AStrictVfsSlotsAreNotUsedByOthers) {
    const std::string sleeper = R"("quantum_ms": 2, "work": {"arrivals": "periodic",
        "work_ms": 0.1, "period_ms": 1000})";
    const auto idle = [&](const std::string& mode) {
        const Figures figures = figures_of(
            scenario(fmt::format(R"({{"mode": "{}", {}}}, {{"quantum_ms": 2}})", mode, sleeper)));
        return static_cast<double>(figures.idle_ns) / static_cast<double>(figures.elapsed_ns);
    };
    EXPECT_LT(idle("work-conserving"), 0.05);
    EXPECT_GT(idle("strict"), 0.4);
}

TEST(Product, AWeightThatChangesCountsFromTheNextTable) {
    GpsFluid oracle;
    const Figures figures =
        figures_of(scenario(R"({"name": "a", "weight": 300, "quantum_ms": 2}, {"quantum_ms": 2})",
                            R"(, "changes": [{"at_ms": 1500, "vf": "a", "weight": 100}])"),
                   &oracle);
    EXPECT_NEAR(share(figures, 1), (0.75 + 0.5) / 2, 0.005);
    EXPECT_LE(worst_lag_ms(oracle), kRequestMs + 0.03);
}

TEST(Product, AVfThatJoinsAndLeavesDisturbsNobodysShare) {
    GpsFluid oracle;
    const Figures figures =
        figures_of(scenario(R"({"name": "a", "weight": 300, "quantum_ms": 2}, {"quantum_ms": 2},
                    {"name": "guest", "quantum_ms": 2, "joins_later": true})",
                            R"(, "changes": [{"at_ms": 1000, "vf": "guest", "what": "join"},
                                  {"at_ms": 2000, "vf": "guest", "what": "leave"}])"),
                   &oracle);
    EXPECT_NEAR(share(figures, 1) / share(figures, 2), 3, 0.05);
    EXPECT_NEAR(share(figures, 3), 0.2 / 3, 0.01);
}

TEST(Product, WithVgpudStoppedSharesReservationsAndCapsHold) {
    const Simulation setup = scenario(R"(
        {"weight": 300, "quantum_ms": 2}, {"weight": 100, "quantum_ms": 2},
        {"quantum_ms": 2, "max_pct": 10, "burst_ms": 5},
        {"quantum_ms": 2, "min_pct": 12, "latency_ms": 20,
         "work": {"arrivals": "periodic", "work_ms": 2, "period_ms": 20, "deadline_ms": 20}})");
    for (const std::int64_t continues_at_ns : {INT64_MAX, std::int64_t{2'500'000'000}}) {
        GpsFluid oracle;
        const Figures figures = figures_of(
            setup, &oracle, {.stops_at_ns = 500'000'000, .continues_at_ns = continues_at_ns});
        EXPECT_NEAR(share(figures, 1) / share(figures, 2), 3, 0.05);
        EXPECT_LE(static_cast<double>(figures.vfs[3].service_ns),
                  0.1 * static_cast<double>(figures.elapsed_ns) + 5e6);
        EXPECT_EQ(figures.vfs[4].missed, 0u);
        EXPECT_GE(figures.vfs[4].jobs, 145u);
    }
}

TEST(Product, AVfThatWakesWhileVgpudIsStoppedIsServed) {
    const Figures figures =
        figures_of(scenario(R"({"quantum_ms": 2}, {"quantum_ms": 2, "work": {"arrivals": "periodic",
            "work_ms": 5, "period_ms": 400, "phase_ms": 1000}})"),
                   nullptr, {.stops_at_ns = 200'000'000});
    EXPECT_EQ(figures.vfs[2].jobs, 5u);
    EXPECT_LE(quantile(figures.vfs[2].response_ns, 1), 60'000'000);
}

TEST(Product, TheLatencyClassIsServedWithinTwoMilliseconds) {
    const Figures figures = figures_of(scenario(R"({"count": 6, "quantum_ms": 2},
        {"count": 2, "quantum_ms": 2, "min_pct": 25, "latency_ms": 4,
         "work": {"arrivals": "bursty", "work_ms": 0.5, "period_ms": 8}})"));
    for (const std::uint32_t vf : {7u, 8u}) {
        EXPECT_GE(figures.vfs[vf].jobs, 200u);
        EXPECT_LE(quantile(figures.vfs[vf].response_ns, 0.99), 2'000'000);
    }
}

TEST(Product, TheSameSeedGivesTheSameRun) {
    const Simulation setup = random_mix(8, 7, 0.5);
    const Figures one = figures_of(setup), two = figures_of(setup);
    EXPECT_EQ(one.runs, two.runs);
    for (std::uint32_t vf = 1; vf <= 8; ++vf) {
        EXPECT_EQ(one.vfs[vf].service_ns, two.vfs[vf].service_ns);
        EXPECT_EQ(one.vfs[vf].response_ns, two.vfs[vf].response_ns);
    }
}

TEST(Product, TimeIsServiceSwitchingOrIdleAndNothingElse) {
    const Figures figures = figures_of(random_mix(5, 3, 0.6));
    EXPECT_EQ(figures.service_ns + figures.switching_ns + figures.idle_ns, figures.elapsed_ns);
}

TEST(Product, OverrunsAreTheirVfsOwnAndBoundTheLag) {
    Simulation setup = scenario(R"({"count": 4, "quantum_ms": 2, "max_gap_ms": 1000})");
    setup.device.overrun_part = 0.3;
    setup.device.overrun_mean_ns = 500'000;
    setup.device.overrun_max_ns = 3'000'000;
    GpsFluid oracle;
    const Figures figures = figures_of(setup, &oracle);
    for (std::uint32_t vf = 1; vf <= 4; ++vf) {
        EXPECT_GT(figures.vfs[vf].worst_overrun_ns, 1'000'000);
        EXPECT_NEAR(share(figures, vf), 0.25, 0.005);
    }
    EXPECT_LE(worst_lag_ms(oracle), kRequestMs + 3.0);
}

TEST(Product, MoreVfsThanATableHoldsAreRefused) {
    const auto figures = run_product(scenario(R"({"count": 17, "quantum_ms": 1})"));
    ASSERT_FALSE(figures);
    EXPECT_THAT(figures.error().cause, HasSubstr("17 VFs"));
}

}  // namespace
}  // namespace vgpu::simulator
