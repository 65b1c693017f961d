// SPDX-License-Identifier: MIT
//
// The models of other systems behave as their sources say: a comparison with a straw man is none.
#include "daemon/simulator/peers.h"

#include "daemon/simulator/gps_fluid.h"
#include "daemon/simulator/product.h"

#include <gtest/gtest.h>

#include <map>

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

/// Notes which work arrives at each VF.
struct ArrivalLog : Observer {
    void arrived(std::uint32_t vf, std::int64_t) override { ++jobs[vf]; }
    std::map<std::uint32_t, int> jobs;
};

TEST(Peers, AllPoliciesGetTheSameWorkHoweverOftenVfsOverrun) {
    Simulation setup = backlogged({1, 2});
    for (VfSetup& vf : setup.vfs)
        vf.work = {.arrivals = Arrivals::Bursty, .work_ns = kMs, .period_ns = 10 * kMs};
    setup.device.overrun_part = 0.3;
    setup.device.overrun_mean_ns = kMs;
    setup.device.overrun_max_ns = 5 * kMs;
    GimRoundRobin gim;
    XeSlices xe;
    ArrivalLog of_gim, of_xe, of_product;
    static_cast<void>(Simulator(setup, gim, &of_gim).run());
    static_cast<void>(Simulator(setup, xe, &of_xe).run());
    ASSERT_TRUE(run_product(setup, &of_product));
    EXPECT_GT(of_gim.jobs[1], 1000);
    EXPECT_EQ(of_gim.jobs, of_xe.jobs);
    EXPECT_EQ(of_gim.jobs, of_product.jobs);
}

}  // namespace
}  // namespace vgpu::simulator
