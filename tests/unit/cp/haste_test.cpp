// SPDX-License-Identifier: MIT
//
// The budget of threads that answer before the host's other work.
#include <gtest/gtest.h>

#include "pf-driver/softgpu/base/haste.h"

namespace vgpu::test {
namespace {

using softgpu::Haste;
using softgpu::Nanoseconds;
using namespace std::chrono_literals;

TEST(Haste, ItBeginsWithAFullBudget) {
    Haste haste;
    EXPECT_TRUE(haste.wake(0s, 5s));
    EXPECT_TRUE(haste.go_on(5s + 999us));
    EXPECT_FALSE(haste.go_on(5s + 1ms));
}

TEST(Haste, WhoSleepsNearlyAlwaysIsAlwaysInHaste) {
    Haste haste;
    Nanoseconds cpu{};
    for (Nanoseconds now{}; now < 10s; now += 1ms) {
        ASSERT_TRUE(haste.wake(now, cpu)) << now.count();
        cpu += 40us;  // 4 % of a CPU
        ASSERT_TRUE(haste.go_on(cpu)) << now.count();
    }
}

TEST(Haste, NobodyTakesMoreThanItsPartOfACpu) {
    Haste haste;
    Nanoseconds hasty{};
    Nanoseconds cpu{};
    for (Nanoseconds now{}; now < 10s; now += 10us) {  // asleep for an instant, again and again
        if (haste.wake(now, cpu)) hasty += 10us;
        cpu += 10us;
        (void)haste.go_on(cpu);
    }
    EXPECT_LE(hasty, 10'000ms / 20 + 1ms);
    EXPECT_GE(hasty, 10'000ms / 40);
}

TEST(Haste, ALongTurnIsPaidForLater) {
    Haste haste;
    ASSERT_TRUE(haste.wake(0s, 0s));
    ASSERT_FALSE(haste.go_on(5ms));  // 4 ms of debt: 80 ms, and a quarter of the budget
    EXPECT_FALSE(haste.wake(80ms, 5ms));
    EXPECT_FALSE(haste.wake(84ms, 5ms));
    EXPECT_TRUE(haste.wake(86ms, 5ms));
}

TEST(Haste, ABudgetDoesNotGrowBeyondItself) {
    Haste haste;
    EXPECT_TRUE(haste.wake(3600s, 0s));
    EXPECT_FALSE(haste.go_on(1ms));
}

}  // namespace
}  // namespace vgpu::test
