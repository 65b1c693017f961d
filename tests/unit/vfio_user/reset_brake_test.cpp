// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/reset_brake.h"

#include <gtest/gtest.h>

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::milliseconds;

constexpr ResetBrake::Spec kTwo{.burst = 2, .gap = milliseconds(100)};

ResetBrake::Time at(int ms) {
    return ResetBrake::Time(std::chrono::seconds(1000) + milliseconds(ms));
}

TEST(VfioUserResetBrake, ABurstIsFree) {
    ResetBrake brake(kTwo);
    EXPECT_LE(brake.free_at(), at(0));
    brake.count(2, at(0));
    EXPECT_LE(brake.free_at(), at(0));
}

TEST(VfioUserResetBrake, EachFurtherResetCostsItsGap) {
    ResetBrake brake(kTwo);
    brake.count(3, at(0));
    EXPECT_EQ(brake.free_at(), at(100));
    brake.count(1, at(100));
    EXPECT_EQ(brake.free_at(), at(200));
}

TEST(VfioUserResetBrake, NoResetCostsNothing) {
    ResetBrake brake(kTwo);
    brake.count(0, at(1000));
    brake.count(3, at(0));
    EXPECT_EQ(brake.free_at(), at(100));
}

TEST(VfioUserResetBrake, NoMoreThanABurstIsSavedUp) {
    ResetBrake brake(kTwo);
    brake.count(3, at(0));
    brake.count(3, at(100000));
    EXPECT_EQ(brake.free_at(), at(100100));
}

TEST(VfioUserResetBrake, DriverThatWaitsAfterEachResetIsNeverHeld) {
    ResetBrake brake;
    for (int ms = 0; ms < 100000; ms += 100) {
        brake.count(1, at(ms));
        ASSERT_LE(brake.free_at(), at(ms));
    }
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
