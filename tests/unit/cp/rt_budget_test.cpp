// SPDX-License-Identifier: MIT
//
// The budget of threads that answer before the host's other work.
#include <gtest/gtest.h>

#include "pf-driver/softgpu/base/rt_budget.h"

namespace vgpu::test {
namespace {

using softgpu::Nanoseconds;
using softgpu::RtBudget;

constexpr Nanoseconds kUs{1'000};
constexpr Nanoseconds kMs{1'000'000};
constexpr Nanoseconds kSecond{1'000'000'000};

TEST(RtBudget, ItBeginsWithAFullBudget) {
    RtBudget rt_budget;
    EXPECT_TRUE(rt_budget.wake(0 * kSecond, 5 * kSecond));
    EXPECT_TRUE(rt_budget.charge(5 * kSecond + 999 * kUs));
    EXPECT_FALSE(rt_budget.charge(5 * kSecond + 1 * kMs));
}

TEST(RtBudget, WhoSleepsNearlyAlwaysAlwaysHasRealTimeBudgetLeft) {
    RtBudget rt_budget;
    Nanoseconds cpu{};
    for (Nanoseconds now{}; now < 10 * kSecond; now += 1 * kMs) {
        ASSERT_TRUE(rt_budget.wake(now, cpu)) << now.count();
        cpu += 40 * kUs;  // 4 % of a CPU
        ASSERT_TRUE(rt_budget.charge(cpu)) << now.count();
    }
}

TEST(RtBudget, NobodyTakesMoreThanItsPartOfACpu) {
    RtBudget rt_budget;
    Nanoseconds rt{};
    Nanoseconds cpu{};
    for (Nanoseconds now{}; now < 10 * kSecond;
         now += 10 * kUs) {  // asleep for an instant, again and again
        if (rt_budget.wake(now, cpu)) rt += 10 * kUs;
        cpu += 10 * kUs;
        (void)rt_budget.charge(cpu);
    }
    EXPECT_LE(rt, 10 * kSecond / 20 + 1 * kMs);
    EXPECT_GE(rt, 10 * kSecond / 40);
}

TEST(RtBudget, ALongTurnIsPaidForLater) {
    RtBudget rt_budget;
    ASSERT_TRUE(rt_budget.wake(0 * kSecond, 0 * kSecond));
    ASSERT_FALSE(rt_budget.charge(5 * kMs));  // 4 ms of debt: 80 ms, and a quarter of the budget
    EXPECT_FALSE(rt_budget.wake(80 * kMs, 5 * kMs));
    EXPECT_FALSE(rt_budget.wake(84 * kMs, 5 * kMs));
    EXPECT_TRUE(rt_budget.wake(86 * kMs, 5 * kMs));
}

TEST(RtBudget, RecoveryIsWhenItMayGoOnAgain) {
    RtBudget rt_budget;
    ASSERT_TRUE(rt_budget.wake(0 * kSecond, 0 * kSecond));
    ASSERT_FALSE(rt_budget.charge(1 * kMs + 100 * kUs));
    EXPECT_EQ(rt_budget.recovery(), 7 * kMs);  // 100 us of debt and a quarter of the budget
    EXPECT_FALSE(rt_budget.wake(7 * kMs - 1 * kUs, 2 * kMs));
    EXPECT_TRUE(rt_budget.wake(7 * kMs, 2 * kMs));
    EXPECT_EQ(rt_budget.recovery(), 0 * kMs);
}

TEST(RtBudget, ABudgetDoesNotGrowBeyondItself) {
    RtBudget rt_budget;
    EXPECT_TRUE(rt_budget.wake(3600 * kSecond, 0 * kSecond));
    EXPECT_FALSE(rt_budget.charge(1 * kMs));
}

}  // namespace
}  // namespace vgpu::test
