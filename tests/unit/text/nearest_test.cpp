// SPDX-License-Identifier: MIT
#include "text/nearest.h"

#include <gtest/gtest.h>
#include <array>

namespace vgpu::text {
namespace {

constexpr std::array<std::string_view, 3> kKnown{"weight", "quantum_us", "name"};

TEST(Nearest, NamesTheKnownWordThatIsClosest) {
    EXPECT_EQ(did_you_mean("wieght", kKnown), "; did you mean 'weight'?");
    EXPECT_EQ(did_you_mean("quantumms", kKnown), "; did you mean 'quantum_us'?");
}

TEST(Nearest, NamesNothingForAnotherWord) {
    EXPECT_EQ(did_you_mean("frobnicate", kKnown), "");
    EXPECT_EQ(did_you_mean("x", {}), "");
}

}  // namespace
}  // namespace vgpu::text
