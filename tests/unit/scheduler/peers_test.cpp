// SPDX-License-Identifier: MIT
//
// The models of other systems behave as their sources say: a comparison with a straw man is none.
#include "simulator/peers.h"

#include "simulator/gps_fluid.h"
#include "simulator/planned.h"
#include "tests/unit/scheduler/runs.h"

#include <gtest/gtest.h>

namespace vgpu::simulator {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Simulation backlogged(const std::vector<std::uint32_t>& weights) {
    Simulation setup{.duration_ns = 20'000 * kMs};
    for (const std::uint32_t weight : weights)
        setup.vfs.push_back({.policy = {.weight = weight, .request_ns = 2 * kMs}});
    return setup;
}

double share(const Figures& figures, std::uint32_t vf) {
    return static_cast<double>(figures.vfs[vf].service_ns) /
           static_cast<double>(figures.service_ns);
}

TEST(Peers, GimGivesEqualSlicesOfSixMillisecondsWhateverTheWeights) {
    GimRoundRobin policy;
    const Figures figures = Simulator(backlogged({1, 5}), policy).run();
    EXPECT_NEAR(share(figures, 1), 0.5, 0.001);
    EXPECT_NEAR(static_cast<double>(figures.service_ns) / static_cast<double>(figures.runs), 6e6,
                1e4);
}

TEST(Peers, GimTakesOverrunsOffTheNextSlices) {
    Simulation setup = backlogged({1, 1, 1});
    setup.device.overrun_part = 0.3;
    setup.device.overrun_mean_ns = kMs;
    setup.device.overrun_max_ns = 5 * kMs;
    GimRoundRobin policy;
    const Figures figures = Simulator(setup, policy).run();
    for (const std::uint32_t vf : {1u, 2u, 3u}) EXPECT_NEAR(share(figures, vf), 1.0 / 3, 0.01);
}

TEST(Peers, XeTakesSixteenMillisecondsInTurn) {
    XeSlices policy;
    const Figures figures = Simulator(backlogged({1, 1, 1}), policy).run();
    for (const std::uint32_t vf : {1u, 2u, 3u}) EXPECT_NEAR(share(figures, vf), 1.0 / 3, 0.01);
    EXPECT_NEAR(static_cast<double>(figures.vfs[1].longest_wait_ns), 32.3e6, 1e5);
}

TEST(Peers, GvtSharesByWeightAndIdlesWithoutCredit) {
    GvtCredit policy;
    const Figures both = Simulator(backlogged({1, 3}), policy).run();
    EXPECT_NEAR(share(both, 1), 0.25, 0.02);
    // one of two has no work: the other may not have its credit
    Simulation setup = backlogged({1, 1});
    setup.vfs[1].work = {
        .arrivals = Arrivals::Periodic, .work_ns = kMs, .period_ns = 1000 * kMs, .phase_ns = 0};
    GvtCredit alone;
    const Figures one = Simulator(setup, alone).run();
    EXPECT_GT(one.idle_with_work_ns, one.elapsed_ns / 3);
}

TEST(Peers, StartTimeFairnessSharesByWeight) {
    StartTimeFair policy;
    GpsFluid oracle;
    const Figures figures = Simulator(backlogged({1, 2, 5}), policy, &oracle).run();
    EXPECT_NEAR(share(figures, 1), 0.125, 0.001);
    EXPECT_LT(oracle.worst_lag_ns(), 3 * 2e6L);
}

/// Forgets what was worst before `from_ns`.
class LateOracle : public GpsFluid {
public:
    explicit LateOracle(std::int64_t from_ns) : from_ns_(from_ns) {}
    void served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t at_ns) override {
        GpsFluid::served(vf, ns, is_reserved, at_ns);
        if (at_ns < from_ns_) forget_worst();
    }

private:
    std::int64_t from_ns_;
};

/// What a table did not foresee is served by it until the next one takes over: at most an interval
/// between tables, the delay of a plan and the slice under way. Nothing else adds to the lag, but a
/// VF that has waited as long and then runs out of work: what it forfeits others are owed as well.
TEST(Planned, TablesAddNoMoreThanTheTimeTheyAreStale) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        for (const double bursty_part : {0.0, 0.5}) {
            const Simulation setup =
                random_setup({.vfs = 16, .bursty_part = bursty_part, .seed = seed});
            const PlannedPolicy::Delays delays;
            PlannedPolicy policy(delays);
            LateOracle oracle(200 * kMs);
            const Figures figures = Simulator(setup, policy, &oracle).run();
            const std::int64_t request_ns = longest_request(setup);
            const std::int64_t stale_ns = delays.interval_ns + delays.plan_delay_ns + request_ns;
            const std::int64_t waits = bursty_part > 0 ? 2 : 1;
            EXPECT_LE(oracle.worst_lag_ns(),
                      static_cast<long double>(waits * (request_ns + stale_ns)))
                << "seed " << seed;
            EXPECT_EQ(figures.idle_with_work_ns, 0);
            RecordProperty("lag_us_" + std::to_string(bursty_part > 0) + std::to_string(seed),
                           std::to_string(oracle.worst_lag_ns() / 1000) + " of " +
                               std::to_string(request_ns / 1000));
        }
    }
}

/// Stops planning after `plans_until_ns`.
class DyingPlanner : public PlannedPolicy {
public:
    explicit DyingPlanner(std::int64_t until_ns) : PlannedPolicy(Delays{}), until_ns_(until_ns) {}
    Grant next(std::int64_t at_ns) override {
        if (at_ns >= until_ns_) kill_planner();
        return PlannedPolicy::next(at_ns);
    }

private:
    std::int64_t until_ns_;
};

/// A table that is repeated for ever gives shares as its horizon happens to hold them: roughly.
TEST(Planned, ADeadPlannerStopsNobodyAndKeepsSharesRoughly) {
    Simulation setup = backlogged({1, 2, 4});
    setup.vfs[0].work = {.arrivals = Arrivals::Bursty, .work_ns = kMs, .period_ns = 30 * kMs};
    DyingPlanner policy(5000 * kMs);
    const Figures figures = Simulator(setup, policy).run();
    EXPECT_EQ(figures.idle_with_work_ns, 0);
    EXPECT_LT(figures.vfs[1].longest_wait_ns, 100 * kMs);
    EXPECT_NEAR(static_cast<double>(figures.vfs[3].service_ns) /
                    static_cast<double>(figures.vfs[2].service_ns),
                2, 0.5);
}

}  // namespace
}  // namespace vgpu::simulator
