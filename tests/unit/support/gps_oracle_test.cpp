// SPDX-License-Identifier: MIT
#include "tests/support/fairness/gps_oracle.h"

#include <gtest/gtest.h>

#include "tests/support/fairness/timeline.h"

namespace vgpu::test {
namespace {

constexpr std::int64_t kMs = 1'000'000;

GpsOracle all_busy(const std::map<std::uint32_t, std::uint64_t>& weights) {
    GpsOracle oracle(weights);
    for (const auto& [vf, weight] : weights) oracle.wake(vf, 0);
    return oracle;
}

TEST(GpsOracle, RoundRobinOfEqualWeightsStaysWithinOneQuantum) {
    auto oracle = all_busy({{1, 1}, {2, 1}});
    for (int i = 0; i < 1000; ++i)
        oracle.run(1 + static_cast<std::uint32_t>(i % 2), kMs, (i + 1) * kMs);
    EXPECT_EQ(oracle.worst_lag_ns(), kMs / 2);
    EXPECT_DOUBLE_EQ(oracle.share(1), 0.5);
    EXPECT_DOUBLE_EQ(oracle.share_error(2), 0.0);
}

TEST(GpsOracle, SeesAVfThatIsStarved) {
    auto oracle = all_busy({{1, 1}, {2, 1}});
    for (int i = 0; i < 10; ++i) oracle.run(1, kMs, (i + 1) * kMs);
    EXPECT_EQ(oracle.account(2).lag_max_ns, 5 * kMs);
    EXPECT_EQ(oracle.account(1).lag_min_ns, -5 * kMs);
    EXPECT_DOUBLE_EQ(oracle.share_error(1), 1.0);
}

TEST(GpsOracle, SeesABlockScheduleOfTheRightSharesAsUnfairInBetween) {
    auto oracle = all_busy({{1, 1}, {2, 3}});
    for (int i = 0; i < 10; ++i) oracle.run(1, kMs, (i + 1) * kMs);
    for (int i = 0; i < 30; ++i) oracle.run(2, kMs);
    EXPECT_DOUBLE_EQ(oracle.share_error(1), 0.0);
    EXPECT_EQ(oracle.worst_lag_ns(), 15 * kMs / 2);
}

TEST(GpsOracle, IdleVfIsDueNothingAndForfeitsWhatItWasOwed) {
    GpsOracle oracle({{1, 1}, {2, 1}});
    oracle.wake(2, 0);
    oracle.run(1, kMs, kMs);
    EXPECT_EQ(oracle.account(2).lag_max_ns, kMs / 2);
    oracle.idle(2);
    oracle.run(2, kMs / 10, kMs + kMs / 10);
    for (int i = 0; i < 10; ++i) oracle.run(1, kMs, (i + 1) * kMs);
    EXPECT_EQ(oracle.account(2).lag, 0);
    oracle.run(2, kMs);
    EXPECT_LT(oracle.account(2).lag, 0);
}

TEST(GpsOracle, WhatAnIdleVfHadTooMuchIsPaidForByTheOthersService) {
    GpsOracle oracle({{1, 1}, {2, 1}});
    oracle.wake(2, 0);
    oracle.idle(1);
    oracle.run(1, 4 * kMs, 4 * kMs);  // 2 ms too much
    const auto owed = oracle.account(1).lag;
    EXPECT_LT(owed, 0);
    oracle.run(2, kMs);
    EXPECT_GT(oracle.account(1).lag, owed);
    for (int i = 0; i < 10; ++i) oracle.run(2, kMs);
    EXPECT_EQ(oracle.account(1).lag, 0);
}

TEST(GpsOracle, VfThatWakesInTheMiddleOfARunCompetesFromThen) {
    GpsOracle oracle({{1, 1}, {2, 1}});
    oracle.wake(2, 3 * kMs);
    oracle.run(1, 4 * kMs, 4 * kMs);
    EXPECT_EQ(oracle.account(2).lag_max_ns, kMs / 2);
    EXPECT_EQ(oracle.account(1).lag_min_ns, -kMs / 2);
}

TEST(GpsOracle, WhatIsJudgedStartsWithTheLagThereIs) {
    GpsOracle oracle({{1, 1}, {2, 1}});
    oracle.wake(2, 0);
    oracle.run(1, 2 * kMs, 2 * kMs);
    oracle.judge();
    EXPECT_EQ(oracle.account(1).received_ns, 0);
    EXPECT_EQ(oracle.account(2).lag_max_ns, kMs);
    oracle.run(2, 2 * kMs);
    EXPECT_EQ(oracle.account(2).lag, 0);
}

TEST(GpsOracle, LagsOfAllBackloggedVfsSumToZero) {
    auto oracle = all_busy({{1, 1}, {2, 1}, {3, 2}, {4, 4}});
    std::uint32_t random = 1;
    for (int i = 0; i < 10000; ++i) {
        random = random * 1664525 + 1013904223;
        oracle.run(1 + (random >> 30), 1000 + (random >> 12) % 1000000);
    }
    std::int64_t sum = 0;
    for (const auto& [vf, account] : oracle.accounts()) sum += account.lag;
    EXPECT_LE(std::abs(sum), 4 * 10000);  // rounding of 1/1024 ns a run
}

TEST(Timeline, DrawsOneBoxPerRunAndTheMarks) {
    Timeline timeline{"t", {{1, "VF1"}, {2, "VF2"}}, {}, {}};
    timeline.runs = {{1, 0, kMs}, {2, kMs, 2 * kMs}};
    timeline.marks = {{kMs, "mark"}};
    const auto svg = to_svg(timeline);
    EXPECT_EQ(svg.rfind("<svg", 0), 0u);
    std::size_t boxes = 0;
    for (auto at = svg.find("<rect x="); at != std::string::npos; at = svg.find("<rect x=", at + 1))
        ++boxes;
    EXPECT_EQ(boxes, 2u);
    EXPECT_NE(svg.find("mark"), std::string::npos);
}

TEST(Timeline, TheLastLabelOfTheAxisFitsThePicture) {
    constexpr double kWidth = 1200, kHalfLabel = 40;
    const Timeline timeline{"t", {{1, "VF1"}}, {{1, 0, 100'000 * kMs}}, {}};
    const auto svg = to_svg(timeline);
    const auto at = svg.rfind("<text x=\"", svg.find("100000.0 ms"));
    ASSERT_NE(at, std::string::npos);
    EXPECT_LE(std::stod(svg.substr(at + sizeof("<text x=\"") - 1)) + kHalfLabel, kWidth);
}

}  // namespace
}  // namespace vgpu::test
