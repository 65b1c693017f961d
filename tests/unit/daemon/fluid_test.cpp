// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/fluid.h"

#include "tests/unit/daemon/gps_oracle.h"

#include <gtest/gtest.h>
#include <cstdlib>

namespace vgpu::daemon::scheduler {
namespace {

TEST(Fluid, AgreesWithTheOracleOverRandomService) {
    daemon::testing::Rng random(3);
    Fluid fluid;
    daemon::testing::GpsOracle oracle;
    const std::uint32_t weights[] = {1, 17, 300, 9999, 10'000};
    for (std::uint32_t vf = 1; vf <= 5; ++vf) {
        fluid.join(vf, weights[vf - 1]);
        oracle.add(vf, weights[vf - 1]);
    }
    for (int i = 0; i < 100'000; ++i) {
        const std::uint32_t vf = 1 + random() % 5;
        const std::int64_t ns = 1 + static_cast<std::int64_t>(random() % 8'000'000);
        fluid.serve(vf, ns);
        oracle.serve(vf, ns);
    }
    for (std::uint32_t vf = 1; vf <= 5; ++vf)
        EXPECT_NEAR(static_cast<double>(fluid.lag_ns(vf)), static_cast<double>(oracle.lag_ns(vf)),
                    2e4);
}

TEST(Fluid, SleeperAccruesNothingAndTheOthersShareTheEngine) {
    Fluid fluid;
    fluid.join(1, 1);
    fluid.join(2, 1);
    fluid.join(3, 2);
    fluid.sleep(3);
    fluid.serve(1, 1000);
    fluid.serve(2, 1000);
    EXPECT_EQ(fluid.lag_ns(1), 0);
    EXPECT_EQ(fluid.lag_ns(3), 0);
    EXPECT_DOUBLE_EQ(fluid.ideal_share(1), 0.5);
    EXPECT_DOUBLE_EQ(fluid.ideal_share(3), 0.0);
    fluid.wake(3);
    EXPECT_DOUBLE_EQ(fluid.ideal_share(3), 0.5);
}

TEST(Fluid, WhoSleepsWithTooMuchServiceOwesItUntilTheOthersCaughtUp) {
    Fluid fluid;
    fluid.join(1, 1);
    fluid.join(2, 1);
    fluid.serve(1, 1000);
    EXPECT_EQ(fluid.lag_ns(1), -500);
    fluid.sleep(1);
    EXPECT_EQ(fluid.lag_ns(1), -500);
    fluid.serve(2, 200);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(1)), -300.0, 1.0);
    fluid.serve(2, 10'000);
    EXPECT_EQ(fluid.lag_ns(1), 0);
}

TEST(Fluid, WhoSleepsBeforeItGotItsShareForfeitsIt) {
    Fluid fluid;
    fluid.join(1, 1);
    fluid.join(2, 1);
    fluid.serve(1, 1000);
    fluid.sleep(2);
    EXPECT_EQ(fluid.lag_ns(2), 0);
    EXPECT_NEAR(static_cast<double>(fluid.lag_ns(1)), 0.0, 1.0);
}

TEST(Fluid, LagsOfTheAwakeSumToZeroThroughEveryChange) {
    daemon::testing::Rng random(5);
    Fluid fluid;
    for (int i = 0; i < 20'000; ++i) {
        const std::uint32_t vf = 1 + random() % 8;
        switch (random() % 6) {
            case 0:
                fluid.join(vf, 1 + random() % 1000);
                break;
            case 1:
                fluid.leave(vf);
                break;
            case 2:
                fluid.sleep(vf);
                break;
            case 3:
                fluid.wake(vf);
                break;
            case 4:
                fluid.set_weight(vf, 1 + random() % 1000);
                break;
            default:
                fluid.serve(vf, static_cast<std::int64_t>(random() % 6'000'000));
                break;
        }
        std::int64_t sum = 0;
        for (std::uint32_t each = 1; each <= 8; ++each)
            if (fluid.is_awake(each)) sum += fluid.lag_ns(each);
        ASSERT_LE(std::llabs(sum), 64) << i;
    }
}

TEST(Fluid, RunningProvesWork) {
    Fluid fluid;
    fluid.join(1, 1);
    fluid.sleep(1);
    fluid.serve(1, 10);
    EXPECT_TRUE(fluid.is_awake(1));
}

}  // namespace
}  // namespace vgpu::daemon::scheduler
