// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/idle_tracker.h"

#include <gtest/gtest.h>

namespace vgpu::softgpu::cp {
namespace {

using std::chrono::microseconds;

constexpr microseconds kGrace{100};

Nanoseconds at(int us) {
    return microseconds(us);
}

TEST(IdleTracker, AVfThatNeverWorkedIsOutOfWorkAtOnce) {
    IdleTracker idle(kGrace);
    idle.begin();
    EXPECT_FALSE(idle.left(at(10))) << "somebody may be inside";
    idle.found_no_work(at(10));
    EXPECT_EQ(idle.left(at(10)), at(0));
}

TEST(IdleTracker, AVfThatHasWorkedHasTheGraceFromWhenItRanDry) {
    IdleTracker idle(kGrace);
    idle.begin();
    idle.worked();
    idle.found_no_work(at(10));
    idle.found_no_work(at(50));
    EXPECT_EQ(idle.left(at(60)), at(50));
    idle.worked();
    EXPECT_FALSE(idle.left(at(200)));
    idle.found_no_work(at(200));
    EXPECT_EQ(idle.left(at(250)), at(50)) << "another dry spell";
}

TEST(IdleTracker, EachIdlePeriodIsNotifiedOnce) {
    IdleTracker idle(kGrace);
    idle.begin();
    idle.found_no_work(at(0));
    idle.report();
    idle.found_no_work(at(1));
    EXPECT_FALSE(idle.left(at(500)));
    idle.worked();
    idle.found_no_work(at(600));
    EXPECT_EQ(idle.left(at(700)), at(0));
}

TEST(IdleTracker, RestIsAnIdlePeriodThatWasToldWithoutTheLooksInIt) {
    IdleTracker idle(kGrace);
    idle.begin();
    idle.worked();
    idle.found_no_work(at(0));
    idle.end_idle(at(50));
    EXPECT_EQ(idle.idle_time(), at(0)) << "not told yet";
    idle.found_no_work(at(50));
    idle.report();
    idle.end_idle(at(150));
    EXPECT_EQ(idle.idle_time(), at(150));
    idle.found_no_work(at(160));  // woken for nothing
    idle.end_idle(at(200));
    EXPECT_EQ(idle.idle_time(), at(190));
    idle.begin();
    EXPECT_EQ(idle.idle_time(), at(0));
}

}  // namespace
}  // namespace vgpu::softgpu::cp
