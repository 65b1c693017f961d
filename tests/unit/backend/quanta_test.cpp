// SPDX-License-Identifier: MIT
//
// Weights to quanta: the arithmetic of firmware that serves functions in turn.
#include "daemon/backend/quanta.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// VFs 1 … with these weights.
std::vector<VfShare> with_weights(const std::vector<std::uint32_t>& weights,
                                  std::uint32_t timeout_us, std::uint32_t max_wait_us) {
    std::vector<VfShare> out;
    for (const std::uint32_t weight : weights)
        out.push_back({.vf = static_cast<std::uint32_t>(out.size()) + 1,
                       .weight = weight,
                       .preempt_timeout_us = timeout_us,
                       .max_wait_us = max_wait_us});
    return out;
}

std::vector<std::uint32_t> ms_of(const Quanta& quanta) {
    std::vector<std::uint32_t> out;
    for (const VfQuantum& vf : quanta.vfs) out.push_back(vf.quantum_ms);
    return out;
}

/// The PF's time-out is 5 ms in these: the default with bounds.
TEST(Quanta, AreTheLargestMultipleOfTheWeightsWithinTheBound) {
    const auto quanta = quanta_of(with_weights({1, 2, 4}, 2000, 63'000));
    ASSERT_TRUE(quanta) << quanta.error().cause;
    EXPECT_THAT(ms_of(*quanta), ElementsAre(8, 16, 32));
    EXPECT_EQ(quanta->cycle_ms, 57u);
    EXPECT_EQ(quanta->vfs[0].worst_wait_us, 62'000u);  // 1 + 5, 16 + 2, 32 + 2, and 4 switches
    EXPECT_EQ(quanta->vfs[1].worst_wait_us, 54'000u);
    EXPECT_EQ(quanta->vfs[2].worst_wait_us, 38'000u);
    EXPECT_DOUBLE_EQ(quanta->vfs[2].share, 32.0 / 57);
    EXPECT_DOUBLE_EQ(quanta->vfs[2].guaranteed_share, 32.0 / (32 + 38));
}

TEST(Quanta, OfSixteenEqualVfsAreShortEnoughForTheBound) {
    const auto quanta = quanta_of(with_weights(std::vector<std::uint32_t>(16, 100), 2000, 103'000));
    ASSERT_TRUE(quanta) << quanta.error().cause;
    EXPECT_EQ(quanta->vfs[15].quantum_ms, 3u);
    EXPECT_EQ(quanta->cycle_ms, 49u);
    EXPECT_EQ(quanta->vfs[0].worst_wait_us, 98'000u);
}

TEST(Quanta, WithoutBoundsAreTheKernelsOwnForEqualVfs) {
    const auto quanta = quanta_of(with_weights({100, 100, 100, 100}, 0, 0), 16);
    ASSERT_TRUE(quanta);
    EXPECT_THAT(ms_of(*quanta), ElementsAre(16, 16, 16, 16));
    EXPECT_EQ(quanta->cycle_ms, 80u);
    EXPECT_EQ(quanta->vfs[0].preempt_timeout_us, 16'000u);
    EXPECT_EQ(quanta->vfs[0].worst_wait_us, 133'000u);
}

TEST(Quanta, WithoutBoundsKeepTheCycleShort) {
    const auto quanta = quanta_of(with_weights(std::vector<std::uint32_t>(63, 1), 0, 0));
    ASSERT_TRUE(quanta);
    EXPECT_EQ(quanta->vfs[0].quantum_ms, 3u);
    EXPECT_EQ(quanta->cycle_ms, 190u);
}

TEST(Quanta, OfASingleVfHaveAnEnd) {
    const auto quanta = quanta_of(with_weights({7}, 0, 50'000));
    ASSERT_TRUE(quanta);
    EXPECT_LE(quanta->vfs[0].quantum_ms, 200u);
}

TEST(Quanta, ArePossibleWithoutAnyVf) {
    const auto quanta = quanta_of({});
    ASSERT_TRUE(quanta);
    EXPECT_EQ(quanta->pf_quantum_ms, 1u);
}

TEST(Quanta, AreRoundedWithinFivePercentIfTheRatioNeedsALongCycle) {
    const auto quanta = quanta_of(with_weights({997, 1003, 2001}, 0, 0));
    ASSERT_TRUE(quanta) << quanta.error().cause;
    const double total = quanta->cycle_ms - 1.0;
    EXPECT_LE(quanta->cycle_ms, 202u);
    EXPECT_NEAR(quanta->vfs[0].quantum_ms / total, 997.0 / 4001, 0.05 * 997 / 4001);
    EXPECT_NEAR(quanta->vfs[2].quantum_ms / total, 2001.0 / 4001, 0.05 * 2001 / 4001);
}

TEST(Quanta, ThatTheTimeoutsAloneMakeTooLateAreRefusedWithWhatHelps) {
    const auto refused =
        quanta_of(with_weights(std::vector<std::uint32_t>(16, 1), 16'000, 100'000));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(
        refused.error().cause,
        HasSubstr("vf1 may wait at most 100 ms, but waits up to 278 ms even if every quantum "
                  "is the shortest; use fewer VFs, shorter preempt time-outs"));
}

TEST(Quanta, FixedByTheOperatorStayAndOthersFollowTheirWeights) {
    auto demands = with_weights({1, 1, 3}, 0, 0);
    demands[0].quantum_us = 20'000;
    const auto quanta = quanta_of(demands);
    ASSERT_TRUE(quanta);
    EXPECT_EQ(quanta->vfs[0].quantum_ms, 20u);
    EXPECT_EQ(quanta->vfs[2].quantum_ms, 3 * quanta->vfs[1].quantum_ms);
}

TEST(Quanta, ThatAreNoWholeMillisecondsAreRefusedWithTheirNeighbours) {
    auto demands = with_weights({1}, 0, 0);
    demands[0].quantum_us = 2500;
    const auto refused = quanta_of(demands);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::OutOfRange);
    EXPECT_THAT(refused.error().cause, HasSubstr("2000 or 3000 would fit"));
}

}  // namespace
}  // namespace vgpu::daemon
