// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/wait_account.h"

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
    waits.on_inactive_idle(2, 13ms);
    waits.on_inactive_idle(2, 50ms);
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

TEST(WaitAccount, QuantilesAreOfSingleWaitsAndAtMostAQuarterTooLarge) {
    WaitAccount waits;
    Nanoseconds now{0};
    for (int i = 0; i < 100; ++i) {
        waits.on_wake(1, now);
        const Nanoseconds wait = i < 98 ? 2ms : 20ms;
        waits.on_idle(1);
        waits.on_run(1, 1ms, now + wait + 1ms);
        now += 30ms;
    }
    const auto ratio = [&](double part, Nanoseconds wait) {
        return static_cast<double>(waits.quantile(1, part, now).count()) /
               static_cast<double>(wait.count());
    };
    EXPECT_GT(ratio(0.5, 2ms), 1.0);
    EXPECT_LE(ratio(0.5, 2ms), 1.25);
    EXPECT_GT(ratio(0.99, 20ms), 1.0);
    EXPECT_LE(ratio(0.99, 20ms), 1.25);
    EXPECT_EQ(waits.quantile(2, 0.5, now), 0ms);
}

TEST(WaitAccount, WaitsOfLongAgoAreForgotten) {
    WaitAccount waits;
    const auto wait_until = [&](Nanoseconds at) {
        waits.on_wake(1, at - 10ms);
        waits.on_idle(1);
        waits.on_run(1, 1ms, at + 1ms);
    };
    wait_until(100ms);
    EXPECT_GT(waits.quantile(1, 0.99, 200ms), 10ms);
    EXPECT_GT(waits.quantile(1, 0.99, 20'000ms), 10ms);
    EXPECT_EQ(waits.quantile(1, 0.99, 200'000ms), 0ms);
    wait_until(31'000ms);
    wait_until(200'000ms);
    EXPECT_GT(waits.quantile(1, 0.99, 200'001ms), 10ms);
}

}  // namespace
}  // namespace vgpu::daemon
