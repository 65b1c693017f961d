// SPDX-License-Identifier: MIT
#include "tests/unit/core/exploration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace vgpu::test {
namespace {

constexpr std::size_t kShown = 20;  ///< paths that went wrong

/// All states within the bound, from a root; at least so many, or the exploration has lost its way.
void expect_clean(std::size_t root, Exploration::Bound bound, std::uint64_t min_states) {
    Exploration exploration(bound);
    const Exploration::Root& begin = Exploration::roots()[root];
    exploration.explore(begin);
    std::cout << begin.name << ", acts: " << bound.acts << ", faults: " << bound.has_faults << ": "
              << exploration.states << " states, " << exploration.transitions << " transitions"
              << std::endl;
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
    const char* acts = std::getenv("VGPU_EXPLORATION_ACTIONS");
    if (acts == nullptr) GTEST_SKIP() << "VGPU_EXPLORATION_ACTIONS is not set";
    const char* faults = std::getenv("VGPU_EXPLORATION_FAULTS");
    const char* only = std::getenv("VGPU_EXPLORATION_ROOT");
    const Exploration::Bound bound{.acts = static_cast<std::uint32_t>(std::atoi(acts)),
                                   .is_whole = true,
                                   .has_faults = faults == nullptr || std::atoi(faults) != 0};
    for (std::size_t root = 0; root < Exploration::roots().size(); ++root)
        if (only == nullptr || std::string_view(only) == Exploration::roots()[root].name)
            expect_clean(root, bound, 1);
}

}  // namespace
}  // namespace vgpu::test
