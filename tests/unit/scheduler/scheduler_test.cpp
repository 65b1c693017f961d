// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/scheduler.h"

#include <gtest/gtest.h>

namespace vgpu::daemon::scheduler {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class SchedulerTest : public ::testing::Test {
protected:
    void add(std::uint32_t vf, const VfPolicy& policy) { scheduler_.set(vf, policy, now_); }
    void wake(std::uint32_t vf) { scheduler_.wake(vf, now_); }
    /// Runs what is decided for as long as it is granted, or for `ns`.
    Decision run(std::int64_t ns = 0) {
        const Decision decision = scheduler_.decide(now_);
        if (!decision) return decision;
        scheduler_.start(decision, now_);
        now_ += ns > 0 ? ns : decision.slice_ns;
        scheduler_.stop(now_);
        return decision;
    }

    Scheduler scheduler_;
    std::int64_t now_ = 0;
};

TEST_F(SchedulerTest, NobodyWithWorkIsNobody) {
    EXPECT_FALSE(scheduler_.decide(0));
    add(1, {});
    EXPECT_FALSE(scheduler_.decide(0));
    wake(1);
    EXPECT_EQ(scheduler_.decide(0).vf, 1u);
    scheduler_.sleep(1, now_);
    EXPECT_FALSE(scheduler_.decide(0));
}

TEST_F(SchedulerTest, SwitchTimeIsNobodysService) {
    add(1, {.request_ns = kMs});
    add(2, {.request_ns = kMs});
    wake(1);
    wake(2);
    run();
    now_ += 50 * kMs;
    EXPECT_EQ(scheduler_.lag_ns(1), -kMs / 2);
    run();
    EXPECT_EQ(scheduler_.lag_ns(1), 0);
}

TEST_F(SchedulerTest, AHigherBandIsServedFirstAndPreempts) {
    add(1, {.band = Band::Low, .request_ns = 5 * kMs});
    add(2, {.band = Band::High});
    wake(1);
    const Decision low = scheduler_.decide(now_);
    scheduler_.start(low, now_);
    EXPECT_EQ(low.vf, 1u);
    EXPECT_FALSE(scheduler_.preempt_at(now_));
    now_ += kMs;
    wake(2);
    EXPECT_EQ(scheduler_.preempt_at(now_), now_);
    scheduler_.stop(now_);
    EXPECT_EQ(scheduler_.decide(now_).vf, 2u);
}

TEST_F(SchedulerTest, ASliceIsNotCutBeforeTheShortestRun) {
    add(1, {.request_ns = 5 * kMs});
    add(2, {.reservation = {.budget_ns = kMs, .period_ns = 10 * kMs}});
    wake(1);
    scheduler_.start(scheduler_.decide(now_), now_);
    wake(2);
    EXPECT_EQ(scheduler_.preempt_at(now_), 100'000);
}

TEST_F(SchedulerTest, AReservationComesFirstThenItsVfCompetesByWeight) {
    add(1, {.request_ns = kMs});
    add(2, {.request_ns = kMs, .reservation = {.budget_ns = 2 * kMs, .period_ns = 20 * kMs}});
    wake(1);
    wake(2);
    const Decision first = run();
    EXPECT_EQ(first.vf, 2u);
    EXPECT_EQ(first.service, ServiceClass::Reserved);
    EXPECT_EQ(first.slice_ns, 2 * kMs);
    EXPECT_EQ(scheduler_.lag_ns(1), 0) << "reserved service is not taken off the shares";
    EXPECT_EQ(run().service, ServiceClass::Proportional);
    EXPECT_EQ(run().service, ServiceClass::Proportional);
    EXPECT_EQ(scheduler_.next_event(), 20 * kMs);
    now_ = 20 * kMs;
    EXPECT_EQ(scheduler_.decide(now_).service, ServiceClass::Reserved);
}

TEST_F(SchedulerTest, AnOverrunOfAReservationIsTakenOffItsNextBudget) {
    add(1, {.reservation = {.budget_ns = 2 * kMs, .period_ns = 10 * kMs}});
    wake(1);
    run(3 * kMs);
    now_ = 10 * kMs;
    EXPECT_EQ(scheduler_.decide(now_).slice_ns, kMs);
}

TEST_F(SchedulerTest, TheEarliestDeadlineIsServedFirst) {
    add(1, {.reservation = {.budget_ns = kMs, .period_ns = 50 * kMs}});
    add(2, {.reservation = {.budget_ns = kMs, .period_ns = 10 * kMs}});
    wake(1);
    const Decision decision = scheduler_.decide(now_);
    scheduler_.start(decision, now_);
    now_ += kMs / 2;
    wake(2);
    EXPECT_EQ(scheduler_.preempt_at(now_), now_);
    scheduler_.stop(now_);
    EXPECT_EQ(run().vf, 2u);
    EXPECT_EQ(run().vf, 1u);
}

TEST_F(SchedulerTest, ACapHoldsItsVfBackUntilThereIsASliceOfTokens) {
    add(1, {.request_ns = 2 * kMs, .cap = {.rate_ppm = 100'000, .burst_ns = 4 * kMs}});
    wake(1);
    EXPECT_EQ(run().slice_ns, 2 * kMs);
    EXPECT_EQ(run().slice_ns, 2 * kMs);
    // 0.2 ms came meanwhile; while the bucket was full nothing did
    EXPECT_EQ(run().slice_ns, 200'000);
    EXPECT_FALSE(run());
    EXPECT_TRUE(scheduler_.is_capped(1));
    const std::int64_t ready_ns = *scheduler_.next_event();
    EXPECT_NEAR(static_cast<double>(ready_ns - now_), 20e6, 2e6);
    now_ = ready_ns;
    EXPECT_EQ(run().slice_ns, 2 * kMs);
}

TEST_F(SchedulerTest, AStrictVfKeepsItsSlotsWithoutWork) {
    add(1, {.request_ns = kMs, .is_strict = true});
    add(2, {.request_ns = kMs});
    wake(2);
    int strict = 0;
    for (int i = 0; i < 20; ++i) strict += run().vf == 1 ? 1 : 0;
    EXPECT_EQ(strict, 10);
}

TEST_F(SchedulerTest, ACopyRunsAheadWithoutChangingTheOriginal) {
    for (const std::uint32_t vf : {1u, 2u, 3u}) {
        add(vf, {.weight = vf, .request_ns = kMs});
        wake(vf);
    }
    Scheduler ahead = scheduler_;
    std::vector<std::uint32_t> planned, done;
    for (std::int64_t at = now_; at < 30 * kMs;) {
        const Decision decision = ahead.decide(at);
        planned.push_back(decision.vf);
        ahead.start(decision, at);
        at += decision.slice_ns;
        ahead.stop(at);
    }
    while (now_ < 30 * kMs) done.push_back(run().vf);
    EXPECT_EQ(planned, done);
}

TEST_F(SchedulerTest, AChangeOfBandTakesEffectForAVfAtWork) {
    add(1, {});
    add(2, {});
    wake(1);
    wake(2);
    run();
    add(2, {.band = Band::High});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(run().vf, 2u);
    add(2, {.band = Band::Low});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(run().vf, 1u);
}

TEST_F(SchedulerTest, ARemovedVfIsGoneEvenFromTheEngine) {
    add(1, {});
    add(2, {.reservation = {.budget_ns = kMs, .period_ns = 5 * kMs}});
    wake(1);
    wake(2);
    scheduler_.start(scheduler_.decide(now_), now_);
    now_ += kMs / 2;
    scheduler_.remove(2, now_);
    scheduler_.stop(now_);
    EXPECT_FALSE(scheduler_.has(2));
    EXPECT_EQ(run().vf, 1u);
}

}  // namespace
}  // namespace vgpu::daemon::scheduler
