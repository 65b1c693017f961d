// SPDX-License-Identifier: MIT
//
// The budget of threads that answer before the host's other work.
#include <gtest/gtest.h>

#include "pf-driver/softgpu/base/haste.h"

namespace vgpu::test {
namespace {

using softgpu::Haste;
using softgpu::Nanoseconds;

constexpr Nanoseconds kUs{1'000};
constexpr Nanoseconds kMs{1'000'000};
constexpr Nanoseconds kSecond{1'000'000'000};

TEST(Haste, ItBeginsWithAFullBudget) {
    Haste haste;
    EXPECT_TRUE(haste.wake(0 * kSecond, 5 * kSecond));
    EXPECT_TRUE(haste.go_on(5 * kSecond + 999 * kUs));
    EXPECT_FALSE(haste.go_on(5 * kSecond + 1 * kMs));
}

TEST(Haste, WhoSleepsNearlyAlwaysIsAlwaysInHaste) {
    Haste haste;
    Nanoseconds cpu{};
    for (Nanoseconds now{}; now < 10 * kSecond; now += 1 * kMs) {
        ASSERT_TRUE(haste.wake(now, cpu)) << now.count();
        cpu += 40 * kUs;  // 4 % of a CPU
        ASSERT_TRUE(haste.go_on(cpu)) << now.count();
    }
}

TEST(Haste, NobodyTakesMoreThanItsPartOfACpu) {
    Haste haste;
    Nanoseconds hasty{};
    Nanoseconds cpu{};
    for (Nanoseconds now{}; now < 10 * kSecond;
         now += 10 * kUs) {  // asleep for an instant, again and again
        if (haste.wake(now, cpu)) hasty += 10 * kUs;
        cpu += 10 * kUs;
        (void)haste.go_on(cpu);
    }
    EXPECT_LE(hasty, 10 * kSecond / 20 + 1 * kMs);
    EXPECT_GE(hasty, 10 * kSecond / 40);
}

TEST(Haste, ALongTurnIsPaidForLater) {
    Haste haste;
    ASSERT_TRUE(haste.wake(0 * kSecond, 0 * kSecond));
    ASSERT_FALSE(haste.go_on(5 * kMs));  // 4 ms of debt: 80 ms, and a quarter of the budget
    EXPECT_FALSE(haste.wake(80 * kMs, 5 * kMs));
    EXPECT_FALSE(haste.wake(84 * kMs, 5 * kMs));
    EXPECT_TRUE(haste.wake(86 * kMs, 5 * kMs));
}

TEST(Haste, RecoveryIsWhenItMayGoOnAgain) {
    Haste haste;
    ASSERT_TRUE(haste.wake(0 * kSecond, 0 * kSecond));
    ASSERT_FALSE(haste.go_on(1 * kMs + 100 * kUs));
    EXPECT_EQ(haste.recovery(), 7 * kMs);  // 100 us of debt and a quarter of the budget
    EXPECT_FALSE(haste.wake(7 * kMs - 1 * kUs, 2 * kMs));
    EXPECT_TRUE(haste.wake(7 * kMs, 2 * kMs));
    EXPECT_EQ(haste.recovery(), 0 * kMs);
}

TEST(Haste, ABudgetDoesNotGrowBeyondItself) {
    Haste haste;
    EXPECT_TRUE(haste.wake(3600 * kSecond, 0 * kSecond));
    EXPECT_FALSE(haste.go_on(1 * kMs));
}

}  // namespace
}  // namespace vgpu::test
