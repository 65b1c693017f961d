// SPDX-License-Identifier: MIT
#include "tests/unit/core/exploration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace vgpu::test {
namespace {

constexpr std::size_t kShown = 20;  ///< paths that went wrong

/// All states within the bound, from a root; at least so many, or the exploration has lost its way.
void expect_clean(std::size_t root, Exploration::Bound bound, std::uint64_t min_states) {
    Exploration exploration(bound);
    const Exploration::Root& begin = Exploration::roots()[root];
    exploration.explore(begin);
    std::cout << begin.name << ", " << bound.acts << " acts and a fault: " << exploration.states
              << " states, " << exploration.transitions << " transitions\n";
    EXPECT_GE(exploration.states, min_states);
    EXPECT_GE(exploration.transitions, exploration.states);
    for (std::size_t i = 0; i < std::min(kShown, exploration.wrong.size()); ++i)
        ADD_FAILURE() << exploration.wrong[i];
    EXPECT_EQ(exploration.wrong.size(), 0u);
}

TEST(Exploration, NothingThatHappensToAVfAndNoFaultLeavesAnythingPendingOrStarved) {
    constexpr std::uint64_t kMinStates[] = {36'000, 15'000, 0, 0};
    for (std::size_t root = 0; root < std::size(kMinStates); ++root)
        if (kMinStates[root] != 0) expect_clean(root, {1, false}, kMinStates[root]);
}

TEST(Exploration, NothingWithinTheBoundOfTheEnvironmentLeavesAnythingPendingOrStarved) {
    const char* acts = std::getenv("VGPU_EXPLORATION_ACTS");
    if (acts == nullptr) GTEST_SKIP() << "VGPU_EXPLORATION_ACTS is not set";
    const Exploration::Bound bound{static_cast<std::uint32_t>(std::atoi(acts)), true};
    for (std::size_t root = 0; root < Exploration::roots().size(); ++root)
        expect_clean(root, bound, 1);
}

}  // namespace
}  // namespace vgpu::test
