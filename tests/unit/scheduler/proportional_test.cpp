// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/proportional.h"

#include <gtest/gtest.h>
#include <map>

namespace vgpu::daemon::scheduler {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Proportional awake(const std::map<std::uint32_t, std::uint32_t>& weights,
                   std::int64_t request_ns = kMs) {
    Proportional band;
    for (const auto& [vf, weight] : weights) {
        band.join(vf, weight, request_ns);
        band.wake(vf);
    }
    return band;
}

/// Serves `count` whole requests; how often each VF came.
std::map<std::uint32_t, int> serve(Proportional& band, int count) {
    std::map<std::uint32_t, int> turns;
    for (int i = 0; i < count; ++i) {
        const auto vf = band.pick();
        if (!vf) break;
        ++turns[*vf];
        band.charge(*vf, band.left_ns(*vf));
    }
    return turns;
}

TEST(Proportional, GivesTurnsByWeight) {
    Proportional band = awake({{1, 1}, {2, 2}, {3, 5}});
    EXPECT_EQ(serve(band, 80), (std::map<std::uint32_t, int>{{1, 10}, {2, 20}, {3, 50}}));
    for (const std::uint32_t vf : {1u, 2u, 3u}) EXPECT_EQ(band.lag_ns(vf), 0);
}

TEST(Proportional, NobodyWithWorkMeansNobodyPicked) {
    Proportional band = awake({{1, 1}});
    EXPECT_EQ(band.pick(), 1u);
    band.sleep(1, true);
    EXPECT_FALSE(band.pick());
    EXPECT_FALSE(band.has_work());
}

TEST(Proportional, WhoSleepsWhileOwedForfeitsItToTheOthers) {
    Proportional band = awake({{1, 1}, {2, 1}, {3, 1}});
    band.charge(1, 3 * kMs);
    EXPECT_EQ(band.lag_ns(2), kMs);
    band.sleep(2, true);
    EXPECT_EQ(band.lag_ns(2), 0);
    EXPECT_EQ(band.lag_ns(1), -3 * kMs / 2);
    EXPECT_EQ(band.lag_ns(3), 3 * kMs / 2);
    band.wake(2);
    EXPECT_EQ(band.lag_ns(2), 0);
}

TEST(Proportional, WhoSleepsInDebtPaysItByTheServiceOfTheOthers) {
    Proportional band = awake({{1, 1}, {2, 1}});
    band.charge(1, 2 * kMs);
    band.sleep(1, true);
    EXPECT_EQ(band.lag_ns(1), -kMs);
    band.charge(2, kMs);
    EXPECT_EQ(band.lag_ns(1), -kMs / 2);
    band.wake(1);
    EXPECT_EQ(band.lag_ns(1), -kMs / 2);
    EXPECT_EQ(band.pick(), 2u) << "it is in debt";
    band.sleep(1, true);
    band.charge(2, 10 * kMs);
    EXPECT_EQ(band.lag_ns(1), 0);
    EXPECT_EQ(band.lag_ns(2), 0) << "once the other has paid it is alone, and even";
}

TEST(Proportional, ADebtOutlivesLeavingUntilItIsPaid) {
    Proportional band = awake({{1, 1}, {2, 1}});
    band.charge(1, 2 * kMs);
    band.leave(1);
    EXPECT_FALSE(band.has(1));
    band.join(1, 1, kMs);
    band.wake(1);
    EXPECT_EQ(band.lag_ns(1), -kMs);
    band.leave(1);
    band.charge(2, 5 * kMs);
    band.join(1, 1, kMs);
    band.wake(1);
    EXPECT_EQ(band.lag_ns(1), 0);
}

TEST(Proportional, WhatALeaverWasOwedIsSharedOnceNobodyIsOwedAnything) {
    Proportional band = awake({{1, 1}, {2, 1}, {3, 1}});
    band.charge(1, 3 * kMs);
    band.leave(2);
    EXPECT_EQ(band.lag_ns(3), kMs) << "not on top of what it is owed already";
    EXPECT_EQ(band.lag_ns(1), -2 * kMs);
    EXPECT_EQ(band.pick(), 3u);
    band.charge(3, kMs);
    EXPECT_EQ(band.pick(), 3u);
    band.charge(3, kMs);
    EXPECT_EQ(band.lag_ns(3), 0);
    EXPECT_EQ(band.lag_ns(1), -kMs);
    EXPECT_EQ(band.pick(), 3u);
    band.charge(3, kMs);
    EXPECT_EQ(band.lag_ns(3) + band.lag_ns(1), -kMs) << "it is still there";
    EXPECT_TRUE(band.pick());
    EXPECT_EQ(band.lag_ns(3) + band.lag_ns(1), 0);
}

TEST(Proportional, WhatASleeperIsOwedOutsideOfItsSliceWaitsUntilNobodyIsOwedAnything) {
    Proportional band = awake({{1, 1}, {2, 1}, {3, 1}});
    band.charge(1, 3 * kMs);
    band.sleep(2, false);
    EXPECT_EQ(band.lag_ns(3), kMs) << "not on top of what it is owed already";
    EXPECT_EQ(band.pick(), 3u);
    band.charge(3, 2 * kMs);
    EXPECT_TRUE(band.pick());
    EXPECT_EQ(band.lag_ns(3) + band.lag_ns(1), -kMs) << "one of them is even, nobody is owed more";
    band.charge(3, kMs);
    EXPECT_TRUE(band.pick());
    EXPECT_EQ(band.lag_ns(3) + band.lag_ns(1), 0);
}

TEST(Proportional, WhatIsForfeitedIsSharedAlsoInTheMiddleOfARequest) {
    Proportional band = awake({{1, 1}, {2, 1}, {3, 1}});
    ASSERT_EQ(band.pick(), 1u);
    band.charge(1, kMs / 2);
    band.sleep(2, false);
    band.sleep(3, false);
    EXPECT_TRUE(band.pick());
    EXPECT_EQ(band.lag_ns(1), 0) << "it is alone";
}

TEST(Proportional, AfterOverrunsWhoWouldBeOwedMoreThanARequestComesBeforeAnEarlierDeadline) {
    Proportional band = awake({{1, 2}, {2, 1}, {3, 1}});
    band.set_request(1, 4 * kMs);
    band.set_request(2, kMs);
    band.charge(1, 4 * kMs);
    EXPECT_EQ(band.pick(), 2u);
    band.charge(2, 12 * kMs);
    EXPECT_EQ(band.lag_ns(1), 4 * kMs);
    EXPECT_EQ(band.lag_ns(3), 4 * kMs);
    EXPECT_EQ(band.pick(), 1u) << "the request of 3 is due first, and would put 1 further behind";
}

TEST(Proportional, OverrunIsChargedToWhoeverOverran) {
    Proportional band = awake({{1, 1}, {2, 1}});
    EXPECT_EQ(band.pick(), 1u);
    band.charge(1, 3 * kMs);
    const auto turns = serve(band, 2);
    EXPECT_EQ(turns, (std::map<std::uint32_t, int>{{2, 2}}));
}

TEST(Proportional, ARequestServedInPiecesKeepsItsDeadline) {
    Proportional band = awake({{1, 1}, {2, 1}});
    ASSERT_EQ(band.pick(), 1u);
    band.charge(1, kMs / 4);
    EXPECT_EQ(band.left_ns(1), kMs - kMs / 4);
    EXPECT_EQ(band.pick(), 1u) << "its deadline is still the first";
}

TEST(Proportional, ASmallerWeightWaitsUntilTheDebtIsPaidAtTheOldOne) {
    Proportional band = awake({{1, 3}, {2, 1}});
    band.charge(1, 4 * kMs);
    EXPECT_EQ(band.lag_ns(1), -kMs);
    band.set_weight(1, 1);
    EXPECT_EQ(band.weight(1), 3u);
    band.charge(2, kMs);
    EXPECT_EQ(band.weight(1), 3u);
    EXPECT_EQ(band.lag_ns(1), -kMs / 4);
    // a quarter of a millisecond is paid by 1/3 ms, the rest is shared equally
    band.charge(2, kMs);
    EXPECT_EQ(band.weight(1), 1u);
    EXPECT_NEAR(static_cast<double>(band.lag_ns(1)), 2e6 / 3 / 2, 1);
}

TEST(Proportional, ALargerWeightOfAVfThatIsOwedNothingCountsAtOnce) {
    Proportional band = awake({{1, 1}, {2, 1}});
    band.charge(1, kMs);
    band.set_weight(1, 3);
    EXPECT_EQ(band.weight(1), 3u);
    EXPECT_EQ(band.lag_ns(1), -kMs / 2) << "what it owes is kept";
}

TEST(Proportional, NewWeightOfAVfThatIsOwedWaitsUntilItIsEven) {
    Proportional band = awake({{1, 1}, {2, 1}});
    band.charge(1, kMs);
    band.set_weight(2, 3);
    EXPECT_EQ(band.weight(2), 1u);
    band.charge(2, kMs / 4);
    EXPECT_EQ(band.weight(2), 1u);
    band.charge(2, 3 * kMs / 4);
    EXPECT_EQ(band.lag_ns(2), 0);
    EXPECT_EQ(band.weight(2), 3u);
}

TEST(Proportional, NewWeightOfASleeperCountsAtOnce) {
    Proportional band = awake({{1, 1}, {2, 1}});
    band.sleep(2, true);
    band.set_weight(2, 9);
    EXPECT_EQ(band.weight(2), 9u);
    band.wake(2);
    EXPECT_EQ(serve(band, 50), (std::map<std::uint32_t, int>{{1, 5}, {2, 45}}));
}

TEST(Proportional, ExtremeWeightsLoseNothingToRoundingInAMillionTurns) {
    Proportional band = awake({{1, 1}, {2, 10'000}, {3, 9'999}});
    std::map<std::uint32_t, std::int64_t> got;
    for (int i = 0; i < 1'000'000; ++i) {
        const std::uint32_t vf = *band.pick();
        got[vf] += band.left_ns(vf);
        band.charge(vf, band.left_ns(vf));
    }
    const std::int64_t total = got[1] + got[2] + got[3];
    EXPECT_NEAR(static_cast<double>(band.lag_ns(1)),
                static_cast<double>(total) / 20'000 - static_cast<double>(got[1]), 10);
}

}  // namespace
}  // namespace vgpu::daemon::scheduler
