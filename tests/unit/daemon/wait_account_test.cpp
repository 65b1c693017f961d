// SPDX-License-Identifier: MIT
#include "daemon/service/wait_account.h"

#include <gtest/gtest.h>

namespace vgpu::daemon {
namespace {

using std::chrono_literals::operator""ms;

TEST(WaitAccount, CountsFromTheWakeToTheRun) {
    WaitAccount waits;
    waits.on_wake(1, 10ms);
    EXPECT_EQ(waits.waited(1), 0ms) << "the wait is not over";
    waits.on_run(1, 6ms, 26ms);  // from 20 to 26
    EXPECT_EQ(waits.waited(1), 10ms);
}

TEST(WaitAccount, CountsBetweenRunsWhileThereIsWork) {
    WaitAccount waits;
    waits.on_wake(1, 0ms);
    waits.on_run(1, 6ms, 6ms);
    waits.on_run(1, 6ms, 30ms);  // waited from 6 to 24
    EXPECT_EQ(waits.waited(1), 18ms);
}

TEST(WaitAccount, AVfThatWentIdleDoesNotWait) {
    WaitAccount waits;
    waits.on_wake(1, 0ms);
    waits.on_idle(1);           // in the engine; its run is reported afterwards
    waits.on_run(1, 4ms, 9ms);  // waited from 0 to 5
    EXPECT_EQ(waits.waited(1), 5ms);
    waits.on_wake(1, 100ms);
    waits.on_run(1, 1ms, 103ms);
    EXPECT_EQ(waits.waited(1), 7ms);
}

TEST(WaitAccount, AWakeWithinItsOwnRunIsNoWait) {
    WaitAccount waits;
    waits.on_wake(1, 0ms);
    waits.on_run(1, 5ms, 5ms);
    waits.on_idle(1);
    waits.on_run(1, 5ms, 10ms);
    waits.on_wake(1, 12ms);
    waits.on_idle(1);
    waits.on_wake(1, 14ms);
    waits.on_run(1, 5ms, 17ms);  // from 12 on
    EXPECT_EQ(waits.waited(1), 0ms);
}

TEST(WaitAccount, WorkThatEndsWithoutTheEngineEndsTheWait) {
    WaitAccount waits;
    waits.on_wake(2, 10ms);
    waits.on_parked_idle(2, 13ms);
    waits.on_parked_idle(2, 50ms);
    EXPECT_EQ(waits.waited(2), 3ms);
}

TEST(WaitAccount, LostEventsEndWaitsUncountedAndAForgottenVfStartsAnew) {
    WaitAccount waits;
    waits.on_wake(1, 0ms);
    waits.on_lost();
    waits.on_run(1, 1ms, 100ms);
    EXPECT_EQ(waits.waited(1), 0ms);
    waits.on_run(1, 1ms, 110ms);
    EXPECT_EQ(waits.waited(1), 9ms) << "known again since the last run";
    waits.forget(1);
    EXPECT_EQ(waits.waited(1), 0ms);
}

}  // namespace
}  // namespace vgpu::daemon
