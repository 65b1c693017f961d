// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/reset_rate_limiter.h"

#include <gtest/gtest.h>

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::milliseconds;

constexpr ResetRateLimiter::Spec kTwo{.burst = 2, .gap = milliseconds(100)};

ResetRateLimiter::Time at(int ms) {
    return ResetRateLimiter::Time(std::chrono::seconds(1000) + milliseconds(ms));
}

TEST(VfioUserResetRateLimiter, ABurstIsFree) {
    ResetRateLimiter limiter(kTwo);
    EXPECT_LE(limiter.free_at(), at(0));
    limiter.count(2, at(0));
    EXPECT_LE(limiter.free_at(), at(0));
}

TEST(VfioUserResetRateLimiter, EachFurtherResetCostsItsGap) {
    ResetRateLimiter limiter(kTwo);
    limiter.count(3, at(0));
    EXPECT_EQ(limiter.free_at(), at(100));
    limiter.count(1, at(100));
    EXPECT_EQ(limiter.free_at(), at(200));
}

TEST(VfioUserResetRateLimiter, NoResetCostsNothing) {
    ResetRateLimiter limiter(kTwo);
    limiter.count(0, at(1000));
    limiter.count(3, at(0));
    EXPECT_EQ(limiter.free_at(), at(100));
}

TEST(VfioUserResetRateLimiter, NoMoreThanABurstIsSavedUp) {
    ResetRateLimiter limiter(kTwo);
    limiter.count(3, at(0));
    limiter.count(3, at(100000));
    EXPECT_EQ(limiter.free_at(), at(100100));
}

TEST(VfioUserResetRateLimiter, DriverThatWaitsAfterEachResetIsNeverDelayed) {
    ResetRateLimiter limiter;
    for (int ms = 0; ms < 100000; ms += 100) {
        limiter.count(1, at(ms));
        ASSERT_LE(limiter.free_at(), at(ms));
    }
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
