// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/stall_budget.h"

#include <gtest/gtest.h>

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr StallBudget::Time kStart{seconds(1000)};

StallBudget::Time at(int ms) {
    return kStart + milliseconds(ms);
}

TEST(VfioUserStallBudget, FirstWaitMayTakeAllOfIt) {
    StallBudget budget({}, kStart);
    EXPECT_FALSE(budget.is_spent(kStart));
    EXPECT_EQ(budget.begin(at(0)), at(300));
    budget.end(at(300));
    EXPECT_TRUE(budget.is_spent(at(300)));
}

TEST(VfioUserStallBudget, WaitsAddUp) {
    StallBudget budget({.refill_percent = 0}, kStart);
    (void)budget.begin(at(0));
    budget.end(at(100));
    (void)budget.begin(at(1000));
    budget.end(at(1150));
    EXPECT_FALSE(budget.is_spent(at(2000)));
    EXPECT_EQ(budget.begin(at(2000)), at(2050));
    budget.end(at(2049));
    EXPECT_FALSE(budget.is_spent(at(3000)));
    EXPECT_EQ(budget.begin(at(3000)), at(3001));
    budget.end(at(3007));  // woken late
    EXPECT_TRUE(budget.is_spent(at(3007)));
}

TEST(VfioUserStallBudget, WaitsAtTheSameTimeTakeOnceAndEndTogether) {
    StallBudget budget({.refill_percent = 0}, kStart);
    EXPECT_EQ(budget.begin(at(0)), at(300));
    EXPECT_EQ(budget.begin(at(100)), at(300));
    budget.end(at(150));
    EXPECT_EQ(budget.begin(at(299)), at(300));
    budget.end(at(300));
    budget.end(at(300));
    EXPECT_TRUE(budget.is_spent(at(300)));
}

TEST(VfioUserStallBudget, IsGoodAgainWhenTheReserveHasComeTogether) {
    StallBudget budget({}, kStart);
    budget.end(budget.begin(at(0)));
    EXPECT_TRUE(budget.is_spent(at(300)));
    EXPECT_TRUE(budget.is_spent(at(300 + 399)));
    EXPECT_FALSE(budget.is_spent(at(300 + 400)));  // 5 % of 400 ms
    EXPECT_EQ(budget.begin(at(700)), at(720));
    budget.end(at(720));
    EXPECT_TRUE(budget.is_spent(at(720)));
}

TEST(VfioUserStallBudget, NeverHoldsMoreThanItsCapacity) {
    StallBudget budget({}, kStart);
    (void)budget.begin(at(0));
    budget.end(at(10));
    const auto later = kStart + std::chrono::hours(24 * 365);
    EXPECT_EQ(budget.begin(later), later + milliseconds(300));
}

TEST(VfioUserStallBudget, ClientThatNeverAnswersHoldsUpFivePercent) {
    StallBudget budget({}, kStart);
    milliseconds waited{0};
    constexpr milliseconds kTotal = seconds(100);
    for (milliseconds now{0}; now < kTotal;) {
        const auto time = kStart + now;
        if (budget.is_spent(time)) {
            now += milliseconds(1);
            continue;
        }
        const auto end = budget.begin(time);
        budget.end(end);
        waited += std::chrono::ceil<milliseconds>(end - time);
        now = std::chrono::ceil<milliseconds>(end - kStart);
    }
    EXPECT_GE(waited, kTotal / 25);
    EXPECT_LE(waited, milliseconds(300) + kTotal / 20);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
