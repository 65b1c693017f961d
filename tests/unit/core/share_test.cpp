// SPDX-License-Identifier: MIT
//
// Parts of a whole by weights, floors and caps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "pf-driver/core/pf.h"

namespace vgpu::test {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kWhole = VGPU_SHARE_FULL_PPM;
constexpr std::uint32_t kPercent = kWhole / 100;

struct Part {
    std::uint64_t weight = 1;
    std::uint32_t min_pct = 0;
    std::uint32_t max_pct = 100;
};

std::vector<vgpu_share> divided(const std::vector<Part>& parts) {
    std::vector<vgpu_share> shares;
    for (const Part& part : parts)
        shares.push_back({part.weight, part.min_pct * kPercent, part.max_pct * kPercent, 0});
    vgpu_pf_share_divide(shares.data(), static_cast<std::uint32_t>(shares.size()));
    return shares;
}

std::vector<std::uint32_t> ppm_of(const std::vector<Part>& parts) {
    std::vector<std::uint32_t> out;
    for (const vgpu_share& share : divided(parts)) out.push_back(share.ppm);
    return out;
}

TEST(Share, WithoutBoundsWeightsDecide) {
    EXPECT_THAT(ppm_of({{.weight = 3}, {.weight = 1}}), ElementsAre(750'000, 250'000));
    EXPECT_THAT(ppm_of({{.weight = 1}}), ElementsAre(kWhole));
    EXPECT_TRUE(ppm_of({}).empty());
}

TEST(Share, AFloorIsTakenFromAllOthersByTheirWeights) {
    std::vector<Part> parts(16);
    parts[0].min_pct = 60;
    const auto ppm = ppm_of(parts);
    EXPECT_EQ(ppm[0], 600'000u);
    for (std::size_t i = 1; i < ppm.size(); ++i) EXPECT_EQ(ppm[i], 400'000u / 15);
}

TEST(Share, WhatACapLeavesGoesToTheOthers) {
    EXPECT_THAT(ppm_of({{.weight = 3, .max_pct = 50}, {.weight = 1}}),
                ElementsAre(500'000, 500'000));
    EXPECT_THAT(ppm_of({{.weight = 6, .max_pct = 20}, {.weight = 3}, {.weight = 1}}),
                ElementsAre(200'000, 600'000, 200'000));
}

/// The cap frees so much that the floor is none any more.
TEST(Share, AFloorThatACapMakesNeedlessTakesNothing) {
    EXPECT_THAT(ppm_of({{.weight = 8, .max_pct = 20}, {.weight = 1, .min_pct = 30}, {.weight = 1}}),
                ElementsAre(200'000, 400'000, 400'000));
}

TEST(Share, CapsBelowTheWholeAndFloorsAboveItAreKept) {
    EXPECT_THAT(ppm_of({{.max_pct = 50}}), ElementsAre(500'000));
    EXPECT_THAT(ppm_of({{.min_pct = 80}, {.min_pct = 70}}), ElementsAre(800'000, 700'000));
    EXPECT_THAT(ppm_of({{.min_pct = 40, .max_pct = 30}, {}}), ElementsAre(400'000, 600'000));
}

/// There is a level such that everybody has level * weight, or the bound that this is beyond.
TEST(Share, EverybodyIsAtOneLevelOrAtABound) {
    std::mt19937 random(5);
    const auto rng = [&](std::uint32_t min, std::uint32_t max) {
        return std::uniform_int_distribution<std::uint32_t>(min, max)(random);
    };
    for (int turn = 0; turn < 2000; ++turn) {
        std::vector<Part> parts(rng(1, 16));
        for (Part& part : parts) {
            part.weight = rng(1, 1000);
            part.min_pct = rng(0, 100 / static_cast<std::uint32_t>(parts.size()));
            part.max_pct = rng(std::max(part.min_pct, 1u), 100);
        }
        const auto shares = divided(parts);
        double lowest = 0;     // level that those at floors and in between allow at most
        double highest = 1e9;  // ... and those at caps and in between at least
        std::uint64_t sum = 0, caps = 0;
        for (const vgpu_share& share : shares) {
            ASSERT_GE(share.ppm, share.min_ppm);
            ASSERT_LE(share.ppm, share.max_ppm);
            const auto weight = static_cast<double>(share.weight);
            if (share.ppm > share.min_ppm) lowest = std::max(lowest, (share.ppm - 2) / weight);
            if (share.ppm < share.max_ppm) highest = std::min(highest, (share.ppm + 2) / weight);
            sum += share.ppm;
            caps += share.max_ppm;
        }
        EXPECT_LE(lowest, highest) << "turn " << turn;
        EXPECT_NEAR(static_cast<double>(sum),
                    static_cast<double>(std::min<std::uint64_t>(caps, kWhole)), 16);
    }
}

TEST(Share, TheLargestWeightsDoNotOverflow) {
    EXPECT_THAT(ppm_of({{.weight = VGPU_SHARE_WEIGHT_MAX}, {.weight = VGPU_SHARE_WEIGHT_MAX}}),
                ElementsAre(500'000, 500'000));
}

}  // namespace
}  // namespace vgpu::test
