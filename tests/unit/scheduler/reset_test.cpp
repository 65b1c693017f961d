// SPDX-License-Identifier: MIT
//
// VFs of a scenario that hang: the PF core in virtual time resets them, their neighbours lose no
// more than the time-out, and the culprit pays for it.
#include "daemon/simulator/comparison.h"
#include "tests/unit/scheduler/product_runs.h"

#include <map>

namespace vgpu::simulator {
namespace {

using ::testing::HasSubstr;

constexpr double kRequestMs = 2;
constexpr double kTimeoutMs = 50;
/// The PF core takes the engine away that long after the end of a slice, looks whether it is free
/// that often, and has it again that long after it ordered the FLR.
constexpr double kNoticeMs = 20;
constexpr double kLookMs = 10;
constexpr double kFlrMs = 2;
/// What the neighbours of a VF that hangs can lose.
constexpr double kMaxLostMs = kRequestMs + kNoticeMs + kTimeoutMs + kLookMs + kFlrMs;

/// VF 1 with `faults` and two others, all with work; slices of 2 ms.
Simulation with_faults(const std::string& faults, const std::string& more = "") {
    return scenario(fmt::format(R"({{"quantum_ms": 2, "preempt_timeout_ms": {}, "faults": [{}]{}}},
                       {{"quantum_ms": 2, "weight": 200}}, {{"quantum_ms": 2}})",
                                kTimeoutMs, faults, more));
}

TEST(HangScenario, TheVfIsResetOnceAndGoesOn) {
    const Figures figures = figures_of(with_faults(R"({"at_ms": 500, "kind": "hang"})"));
    EXPECT_EQ(figures.vfs[1].resets, 1u);
    EXPECT_EQ(figures.vfs[2].resets + figures.vfs[3].resets, 0u);
    EXPECT_GT(share(figures, 1), 0.20);
    EXPECT_NEAR(share(figures, 2) / share(figures, 3), 2, 0.02);
}

TEST(HangScenario, AVfThatStaysOutLeavesItsShareToTheOthers) {
    const Figures figures =
        figures_of(with_faults(R"({"at_ms": 500, "kind": "hang", "stays_out": true})"));
    EXPECT_EQ(figures.vfs[1].resets, 1u);
    EXPECT_LE(figures.vfs[1].service_ns, 130'000'000);
    EXPECT_NEAR(share(figures, 2) / share(figures, 3), 2, 0.02);
    EXPECT_EQ(figures.idle_with_work_ns / 1'000'000, 0);
}

TEST(HangScenario, NeighboursLoseNoMoreThanTheTimeOut) {
    for (std::int64_t at_ms = 500; at_ms < 512; at_ms += 2) {
        GpsFluid oracle;
        const Figures figures = figures_of(
            with_faults(fmt::format(R"({{"at_ms": {}.37, "kind": "hang"}})", at_ms)), &oracle);
        EXPECT_LE(ms_of(figures.hung_ns), kMaxLostMs) << at_ms;
        EXPECT_GE(ms_of(figures.hung_ns), kTimeoutMs) << at_ms;
        EXPECT_LE(worst_lag_ms(oracle), kRequestMs + kMaxLostMs) << at_ms;
        for (std::uint32_t vf = 2; vf <= 3; ++vf)
            EXPECT_LE(ms_of(figures.vfs[vf].longest_wait_ns), 4 * kRequestMs + kMaxLostMs)
                << "VF " << vf << ", hang at " << at_ms << " ms";
    }
}

TEST(HangScenario, WhatTheHangTookComesOffTheCulpritsShare) {
    GpsFluid oracle;
    const Figures figures = figures_of(with_faults(R"({"at_ms": 500, "kind": "hang"})"), &oracle);
    const double fair_ms = 0.25 * ms_of(figures.service_ns + figures.vfs[1].hung_ns);
    const double charged_ms = ms_of(figures.vfs[1].service_ns + figures.vfs[1].hung_ns);
    EXPECT_NEAR(charged_ms, fair_ms, kRequestMs);
    for (std::uint32_t vf = 1; vf <= 3; ++vf)
        EXPECT_LE(std::abs(static_cast<double>(oracle.lag_ns(vf)) / 1e6), kRequestMs) << vf;
}

TEST(HangScenario, ARandomNeighbourhoodStaysWithinItsBounds) {
    for (std::uint64_t seed = 1; seed <= 2 * seeds(); ++seed) {
        Rng rng(seed);
        std::string list;
        for (int vf = 0; vf < 6; ++vf)
            list += fmt::format(
                R"({}{{"weight": {}, "quantum_ms": 2, "max_gap_ms": 1000,
                      "preempt_timeout_ms": {}, "faults": [{{"at_ms": {}, "kind": "hang"}}]}})",
                vf == 0 ? "" : ", ", 100 * rng.between(1, 5), kTimeoutMs,
                200 + 450 * vf + rng.between(0, 200));
        GpsFluid oracle;
        const Figures figures =
            figures_of(scenario(list, fmt::format(R"(, "seed": {})", seed)), &oracle);
        for (std::uint32_t vf = 1; vf <= 6; ++vf) EXPECT_EQ(figures.vfs[vf].resets, 1u) << seed;
        EXPECT_LE(worst_lag_ms(oracle), kRequestMs + ms_of(figures.hung_ns)) << seed;
        EXPECT_LE(ms_of(figures.hung_ns), 6 * kMaxLostMs) << seed;
        EXPECT_EQ(figures.idle_with_work_ns / 1'000'000, 0) << seed;
    }
}

TEST(HangScenario, AReservationLosesThePeriodsOfTheHangAndNoOther) {
    const Figures figures = figures_of(scenario(
        R"({"quantum_ms": 2, "preempt_timeout_ms": 50,
            "faults": [{"at_ms": 1000, "kind": "hang"}]},
           {"quantum_ms": 2},
           {"quantum_ms": 2, "min_pct": 12, "latency_ms": 20, "work": {"arrivals": "periodic",
            "work_ms": 2, "period_ms": 20, "deadline_ms": 20}})"));
    EXPECT_GE(figures.vfs[3].missed, 2u);
    EXPECT_LE(figures.vfs[3].missed, 8u);
}

TEST(HangScenario, JobsOfAVfThatIsResetAreLostAndCounted) {
    const Figures figures = figures_of(
        with_faults(R"({"at_ms": 1000, "kind": "hang", "stays_out": true})",
                    R"(, "work": {"arrivals": "periodic", "work_ms": 1, "period_ms": 50})"));
    EXPECT_EQ(figures.vfs[1].jobs + figures.vfs[1].lost, 60u);
    EXPECT_GE(figures.vfs[1].lost, 39u);
}

TEST(HangScenario, AHangThatNobodyWaitsForIsNotNoticed) {
    const Figures figures =
        figures_of(scenario(R"({"quantum_ms": 2, "faults": [{"at_ms": 1000, "kind": "hang"}]})"));
    EXPECT_EQ(figures.vfs[1].resets, 0u);
    EXPECT_NEAR(ms_of(figures.hung_ns), 2000, 1);
}

TEST(EndlessScenario, AKernelWithoutAnEndGetsItsShareAndNoReset) {
    const std::string work = R"(, "work": {"arrivals": "periodic", "work_ms": 1, "period_ms": 50})";
    GpsFluid oracle;
    const Figures figures =
        figures_of(with_faults(R"({"at_ms": 1000, "kind": "endless"})", work), &oracle);
    EXPECT_EQ(figures.vfs[1].resets, 0u);
    EXPECT_EQ(figures.hung_ns, 0);
    EXPECT_LE(figures.vfs[1].jobs, 20u);
    EXPECT_NEAR(ms_of(figures.vfs[1].service_ns), 0.25 * 2000 * 0.95, 50);
    EXPECT_LE(worst_lag_ms(oracle), kRequestMs);
}

TEST(OverrunScenario, WhoOverrunsForLongerThanItsTimeOutIsReset) {
    Simulation setup =
        scenario(R"({"quantum_ms": 2, "preempt_timeout_ms": 20}, {"quantum_ms": 2})");
    setup.device.overrun_part = 0.01;
    setup.device.overrun_mean_ns = 300'000'000;
    setup.device.overrun_max_ns = 1'000'000'000;
    const Figures figures = figures_of(setup);
    EXPECT_GE(figures.vfs[1].resets, 1u);
    EXPECT_LE(ms_of(figures.vfs[2].longest_wait_ns),
              5 * kRequestMs + kNoticeMs + 20 + kLookMs + kFlrMs);
}

TEST(HangScenario, TimeIsServiceSwitchingHungOrIdleAndNothingElse) {
    const Figures figures = figures_of(with_faults(R"({"at_ms": 500, "kind": "hang"})"));
    EXPECT_EQ(figures.service_ns + figures.switching_ns + figures.hung_ns + figures.idle_ns,
              figures.elapsed_ns);
}

TEST(HangScenario, OtherSystemsRefuseItAndSayWhatIsKnown) {
    const auto parsed = parse_scenario(
        R"({"duration_ms": 100, "vfs": [{"faults": [{"at_ms": 50, "kind": "hang"}]}, {}]})");
    ASSERT_TRUE(parsed) << parsed.error();
    const std::map<std::string, std::string> known{{"gim", "500 ms"}, {"xe", "16 ms"}};
    for (const Row& row : compare(*parsed)) {
        EXPECT_EQ(row.refusal.empty(), row.policy == kProductName) << row.policy;
        const auto words = known.find(row.policy);
        if (words == known.end()) continue;
        EXPECT_THAT(row.refusal, HasSubstr(words->second)) << row.policy;
    }
}

TEST(EndlessScenario, EverySystemSimulatesIt) {
    const auto parsed = parse_scenario(
        R"({"duration_ms": 500, "vfs": [{"faults": [{"at_ms": 50, "kind": "endless"}],
            "work": {"arrivals": "periodic", "work_ms": 1, "period_ms": 50}}, {}]})");
    ASSERT_TRUE(parsed) << parsed.error();
    for (const Row& row : compare(*parsed)) EXPECT_EQ(row.refusal, "") << row.policy;
}

}  // namespace
}  // namespace vgpu::simulator
