// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/gpu_schedule.h"

#include "tests/unit/daemon/gps_oracle.h"

#include <gmock/gmock.h>
#include <set>

namespace vgpu::daemon {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""us;
using testing::GpsOracle;
using testing::Rng;

/// An engine that carries tables out as the PF core does: from the first entry on, VFs without work
/// passed over, overruns taken off the VF's next slices.
class Engine {
public:
    explicit Engine(std::vector<GpuSchedule::Member> members, std::uint32_t max_gap_ms = 60'000)
        : members_(std::move(members)) {
        schedule_.set_members(members_, max_gap_ms, now_);
        for (const auto& member : members_) {
            oracle_.add(member.vf, member.weight);
            awake_.insert(member.vf);
            schedule_.on_wake(member.vf, now_);
        }
    }

    void run_one(std::int64_t overrun_ns) {
        plan_if_wanted();
        const vgpu_pf_run_entry& entry = next_entry();
        std::int64_t granted = std::int64_t{entry.quantum_us} * 1000;
        std::int64_t& ahead = ahead_[entry.vf];
        const std::int64_t taken = std::min(ahead, granted);
        ahead -= taken;
        granted -= taken;
        if (granted == 0) return;
        ahead += overrun_ns;
        now_ += switch_ + Nanoseconds{granted + overrun_ns};
        oracle_.serve(entry.vf, granted + overrun_ns);
        schedule_.on_run(entry.vf, granted + overrun_ns, now_);
        ++switches_;
    }

    void set_switch(Nanoseconds time) { switch_ = time; }
    [[nodiscard]] const vgpu_pf_run_table& table() const { return table_; }
    [[nodiscard]] GpuSchedule& schedule() { return schedule_; }
    [[nodiscard]] GpsOracle& oracle() { return oracle_; }
    [[nodiscard]] int tables() const { return tables_; }
    [[nodiscard]] int switches() const { return switches_; }

private:
    void plan_if_wanted() {
        now_ += 1us;
        if (!schedule_.needs_table(now_)) return;
        const auto table = schedule_.make_table(++generation_, now_);
        ASSERT_TRUE(table);
        table_ = *table;
        position_ = 0;
        schedule_.installed(now_);
        ++tables_;
    }
    const vgpu_pf_run_entry& next_entry() {
        for (;;) {
            const auto& entry = table_.entries[position_++ % table_.count];
            if (awake_.contains(entry.vf)) return entry;
        }
    }

    std::vector<GpuSchedule::Member> members_;
    GpuSchedule schedule_;
    GpsOracle oracle_;
    std::set<std::uint32_t> awake_;
    std::map<std::uint32_t, std::int64_t> ahead_;  ///< what a VF had beyond its slices
    vgpu_pf_run_table table_{};
    std::size_t position_ = 0;
    std::uint64_t generation_ = 0;
    Nanoseconds now_ = 10s;
    Nanoseconds switch_{0};
    int tables_ = 0;
    int switches_ = 0;
};

std::vector<GpuSchedule::Member> members_of(const std::vector<std::uint32_t>& weights) {
    std::vector<GpuSchedule::Member> members;
    for (std::uint32_t i = 0; i < weights.size(); ++i)
        members.push_back({.vf = i + 1, .weight = weights[i]});
    return members;
}

TEST(GpuSchedule, LagStaysWithinOneQuantumOverManySwitchesAndOneTableSuffices) {
    Engine engine(members_of({1, 1, 2, 4}));
    for (int i = 0; i < 100'000; ++i) engine.run_one(0);
    EXPECT_LE(engine.oracle().worst_lag_ns(), 6e6L + 1);
    EXPECT_EQ(engine.tables(), 1);
}

/// Slices of 8 ms of four with 1:1:2:4 leave 4 ms for switches in a gap of 60 ms.
TEST(GpuSchedule, SlicesBecomeShorterWhereTurnsTakeTooLongForTheGap) {
    std::vector<GpuSchedule::Member> members = members_of({1, 1, 2, 4});
    for (auto& member : members) member.quantum_us = 8000;
    Engine engine(members, 60);
    for (int i = 0; i < 100; ++i) engine.run_one(0);
    const int tables = engine.tables();
    EXPECT_EQ(engine.table().entries[0].quantum_us, 8000u);
    engine.set_switch(500us);
    for (int i = 0; i < 1000; ++i) engine.run_one(100'000);
    EXPECT_GE(engine.schedule().image().overhead, 480us);
    EXPECT_LE(engine.schedule().image().overhead, 650us);
    EXPECT_GT(engine.tables(), tables);
    EXPECT_LE(engine.schedule().plan().worst_gap_us + 8 * 500, 60'000u);
    EXPECT_GE(engine.schedule().plan().quantum_us, 6900u);
    // and it stays with that
    const int settled = engine.tables();
    for (int i = 0; i < 1000; ++i) engine.run_one(100'000);
    EXPECT_LE(engine.tables(), settled + 1);
}

/// 30 ms of somebody's rest are no switch, nor is a host that stood still.
TEST(GpuSchedule, WhatATurnTakesIsNotLearntFromPauses) {
    Engine engine(members_of({1, 1}));
    for (int i = 0; i < 200; ++i) engine.run_one(0);
    const Nanoseconds before = engine.schedule().image().overhead;
    engine.set_switch(30ms);
    for (int i = 0; i < 10; ++i) engine.run_one(0);
    engine.set_switch(0us);
    for (int i = 0; i < 100; ++i) engine.run_one(500'000'000);
    EXPECT_LE(engine.schedule().image().overhead, before + 100us);
}

/// Neither runs of somebody alone in the engine, nor of a reservation, are turns of a table.
TEST(GpuSchedule, WhatATurnTakesIsLearntFromTurnsOfTheTableAlone) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1}), 60, 1s);
    for (const std::uint32_t vf : {1u, 2u}) schedule.on_wake(vf, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.installed(1s);
    schedule.on_run(2, 6'000'000, 1s + 6ms);
    const Nanoseconds before = schedule.image().overhead;
    Nanoseconds now = 1s + 6ms;
    for (int i = 0; i < 100; ++i) schedule.on_run(1, 500'000'000, now += 500ms);
    for (int i = 0; i < 100; ++i) schedule.on_run(1, 8'000'000, now += 8ms, 8'000'000);
    EXPECT_EQ(schedule.image().overhead, before);
}

/// A host that was slow for a while is no reason for short slices for ever.
TEST(GpuSchedule, SlicesBecomeLongerAgainWhenTurnsTakeLess) {
    std::vector<GpuSchedule::Member> members = members_of({1, 1, 2, 4});
    for (auto& member : members) member.quantum_us = 8000;
    Engine engine(members, 60);
    engine.set_switch(900us);
    for (int i = 0; i < 1000; ++i) engine.run_one(0);
    EXPECT_LT(engine.schedule().plan().entries[0].quantum_us, 7500u);
    engine.set_switch(100us);
    for (int i = 0; i < 1000; ++i) engine.run_one(0);
    EXPECT_EQ(engine.schedule().plan().quantum_us, 8000u);
}

TEST(GpuSchedule, OverrunsCostAtMostOneQuantumAndTheWorstOverrun) {
    Rng rng(23);
    Engine engine(members_of({1, 1, 2, 4}));
    constexpr std::int64_t kWorst = 2'000'000;
    for (int i = 0; i < 100'000; ++i)
        engine.run_one(rng() % 5 == 0 ? static_cast<std::int64_t>(rng() % kWorst) : 0);
    EXPECT_LE(engine.oracle().worst_lag_ns(), 6e6L + 2 * kWorst);
    for (std::uint32_t vf = 1; vf <= 4; ++vf) EXPECT_LT(engine.oracle().share_error(vf), 1e-3);
}

TEST(GpuSchedule, LateWakerCompetesFromItsWakeOnly) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1}), 60, 1s);
    schedule.on_wake(1, 1s);
    schedule.on_wake(2, 1s + 9'990ms);
    schedule.on_run(1, 10'000'000'000, 11s);  // alone for 9.99 s, contended for 10 ms
    EXPECT_NEAR(static_cast<double>(schedule.fluid().lag_ns(2)), 5e6, 10.0);
    EXPECT_NEAR(static_cast<double>(schedule.fluid().lag_ns(1)), -5e6, 10.0);
}

TEST(GpuSchedule, IdleVfSleepsFromTheEndOfItsRun) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1}), 60, 1s);
    schedule.on_wake(1, 1s);
    schedule.on_wake(2, 1s);
    schedule.on_run(1, 1'000'000, 1s + 1ms);
    schedule.on_idle(2, 1s + 2ms);
    schedule.on_run(2, 1'000'000, 1s + 2ms);
    EXPECT_FALSE(schedule.fluid().is_awake(2));
    EXPECT_TRUE(schedule.fluid().is_awake(1));
}

TEST(GpuSchedule, VfFoundWithoutWorkAfterItsRunIsOwedNothingFromThenOn) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1}), 60, 1s);
    schedule.on_wake(1, 1s);
    schedule.on_wake(2, 1s);
    schedule.on_run(2, 1'000'000, 1s + 1ms);
    schedule.on_inactive_idle(2, 1s + 1ms);
    EXPECT_FALSE(schedule.fluid().is_awake(2));
    for (int i = 2; i < 50; ++i) schedule.on_run(1, 1'000'000, 1s + i * 1ms);
    schedule.on_wake(2, 1s + 50ms);
    schedule.on_run(1, 1'000'000, 1s + 51ms);
    EXPECT_NEAR(static_cast<double>(schedule.fluid().lag_ns(2)), 0.5e6, 10.0);
}

TEST(GpuSchedule, SleeperGetsATableOfItsOwnKindAndAWakerAnotherOne) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1, 1}), 60, 1s);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) schedule.on_wake(vf, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.installed(1s);
    EXPECT_FALSE(schedule.needs_table(1s + 20ms));
    schedule.on_idle(3, 1s + 20ms);
    EXPECT_FALSE(schedule.needs_table(1s + 50ms));
    EXPECT_TRUE(schedule.needs_table(1s + 150ms));
    const auto table = schedule.make_table(2, 1s + 150ms);
    ASSERT_TRUE(table);
    std::set<std::uint32_t> vfs;
    for (std::uint32_t i = 0; i < table->count; ++i) vfs.insert(table->entries[i].vf);
    EXPECT_EQ(vfs.size(), 3u) << "every VF stays in the table";
    schedule.installed(1s + 150ms);
    EXPECT_FALSE(schedule.needs_table(1s + 200ms));
    schedule.on_wake(3, 1s + 200ms);
    EXPECT_TRUE(schedule.needs_table(1s + 200ms));
}

TEST(GpuSchedule, VfWithoutWorkHasAPlaceInTheReserveUntilItWakes) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1, 1}), 60, 1s);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) schedule.on_wake(vf, 1s);
    auto table = schedule.make_table(1, 1s);
    ASSERT_TRUE(table);
    EXPECT_EQ(table->reserve_count, 0u);
    schedule.installed(1s);
    schedule.on_run(1, 1'000'000, 1s + 19ms);
    schedule.on_inactive_idle(3, 1s + 20ms);
    table = schedule.make_table(2, 1s + 150ms);
    ASSERT_TRUE(table);
    ASSERT_EQ(table->reserve_count, 1u);
    EXPECT_EQ(table->reserve[0].vf, 3u);
    EXPECT_EQ(table->reserve[0].quantum_us, 6000u);
    schedule.installed(1s + 150ms);
    schedule.on_wake(3, 1s + 200ms);
    table = schedule.make_table(3, 1s + 200ms);
    ASSERT_TRUE(table);
    EXPECT_EQ(table->reserve_count, 0u);
}

TEST(GpuSchedule, SleeperThatOwesGetsItsReserveLessItsDebt) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1, 1}), 60, 1s);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) schedule.on_wake(vf, 1s);
    schedule.on_run(3, 3'000'000, 1s + 3ms);  // 2 ms more than its part
    schedule.on_inactive_idle(3, 1s + 3ms);
    const auto table = schedule.make_table(1, 1s + 4ms);
    ASSERT_TRUE(table);
    ASSERT_EQ(table->reserve_count, 1u);
    EXPECT_NEAR(table->reserve[0].quantum_us, 4000, 2);
}

TEST(GpuSchedule, RefusedTableIsTriedAgainButNotAtOnce) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1}), 60, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.refused(1s);
    EXPECT_FALSE(schedule.needs_table(1s + 5ms));
    EXPECT_FALSE(schedule.needs_table(1s + 15ms));
    EXPECT_TRUE(schedule.needs_table(1s + 20ms));
}

TEST(GpuSchedule, AVfThatPausesKeepsItsServiceUntilItIsDestroyed) {
    GpuSchedule schedule;
    schedule.set_members(members_of({1, 1}), 60, 1s);
    for (const std::uint32_t vf : {1u, 2u}) schedule.on_wake(vf, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.on_run(1, 1'000'000, 1s + 1ms);
    schedule.on_run(2, 3'000'000, 1s + 4ms);
    const auto both = members_of({1, 1});
    schedule.set_members({both[1]}, 60, 2s);
    EXPECT_DOUBLE_EQ(schedule.account().share_total(1), 0.25);
    schedule.set_members(both, 60, 3s);
    EXPECT_DOUBLE_EQ(schedule.account().share_total(1), 0.25);
    schedule.forget_service(1);
    EXPECT_DOUBLE_EQ(schedule.account().share_total(1), 0);
}

TEST(ServiceAccount, WindowForgetsAndTotalsDoNot) {
    ServiceAccount account;
    account.add(1, 1000, 0);
    account.add(2, 3000, 1'000'000'000);
    EXPECT_DOUBLE_EQ(account.share_window(1), 0.25);
    account.add(2, 1000, 10'500'000'000);
    EXPECT_DOUBLE_EQ(account.share_window(1), 0.0);
    EXPECT_DOUBLE_EQ(account.share_total(1), 0.2);
    account.restart_window();
    account.add(1, 5, 0);
    EXPECT_DOUBLE_EQ(account.share_window(1), 1.0);
}

}  // namespace
}  // namespace vgpu::daemon
