// SPDX-License-Identifier: MIT
//
// Gangs of a scenario under what is shipped: slots come when they are due, are kept and not cut,
// and leave the rest to the others by weight.
#include "daemon/simulator/comparison.h"
#include "tests/unit/scheduler/product_runs.h"

#include <map>

namespace vgpu::simulator {
namespace {

using ::testing::HasSubstr;

/// A switch that is under way when a slot opens, and the one into it.
constexpr std::int64_t kSwitchesNs = 250'000;
constexpr double kRequestMs = 2;

struct Slots {
    std::int64_t period_ns = 0;
    std::int64_t phase_ns = 0;
    std::int64_t budget_ns = 0;

    [[nodiscard]] std::int64_t into_period(std::int64_t at_ns) const {
        return ((at_ns - phase_ns) % period_ns + period_ns) % period_ns;
    }
};

/// Who was served in the slots of one VF, and how much of each slot that VF had.
class SlotObserver final : public GpsFluid {
public:
    SlotObserver(std::uint32_t vf, const Slots& slots) : vf_(vf), slots_(slots) {}

    void served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t at_ns) override {
        GpsFluid::served(vf, ns, is_reserved, at_ns);
        const std::int64_t into_ns = slots_.into_period(at_ns - ns);
        if (vf == vf_)
            served_in_slot(into_ns, ns, at_ns);
        else if (into_ns + ns > kSwitchesNs && into_ns < slots_.budget_ns - kSwitchesNs)
            ++strangers_;
        else if (into_ns + ns > slots_.period_ns + kSwitchesNs)
            ++strangers_;
    }

    [[nodiscard]] std::uint64_t strangers() const { return strangers_; }
    [[nodiscard]] std::uint64_t outside() const { return outside_; }
    [[nodiscard]] const std::map<std::int64_t, std::int64_t>& received() const { return received_; }

private:
    void served_in_slot(std::int64_t into_ns, std::int64_t ns, std::int64_t at_ns) {
        if (into_ns + ns > slots_.budget_ns + kSwitchesNs) ++outside_;
        received_[(at_ns - ns - slots_.phase_ns) / slots_.period_ns] += ns;
    }

    std::uint32_t vf_;
    Slots slots_;
    std::uint64_t strangers_ = 0;                    ///< pieces of others' service in a slot
    std::uint64_t outside_ = 0;                      ///< pieces of its own outside of one
    std::map<std::int64_t, std::int64_t> received_;  ///< by slot
};

/// Gangs 1 (20 % of 20 ms, always with work) and 2 (15 % from 10 ms on), and VFs 3:1 with work.
Simulation gangs(const std::string& work_of_second, const std::string& batch = "") {
    return scenario(fmt::format(
        R"({{"mode": "gang", "min_pct": 20, "latency_ms": 20}},
           {{"mode": "gang", "min_pct": 15, "latency_ms": 20, "phase_ms": 10{}}},
           {{"weight": 300, "quantum_ms": 2, "max_gap_ms": 1000{}}},
           {{"weight": 100, "quantum_ms": 2, "max_gap_ms": 1000}})",
        work_of_second, batch));
}

constexpr Slots kFirstSlots{.period_ns = 20'000'000, .phase_ns = 0, .budget_ns = 4'000'000};
constexpr Slots kSecondSlots{
    .period_ns = 20'000'000, .phase_ns = 10'000'000, .budget_ns = 3'000'000};
constexpr std::int64_t kSlots = 150;  ///< in three seconds

TEST(GangScenario, EachSlotComesOnTimeAndIsNeverCut) {
    SlotObserver observer(1, kFirstSlots);
    figures_of(gangs(""), &observer);
    EXPECT_EQ(observer.outside(), 0u);
    ASSERT_EQ(std::ssize(observer.received()), kSlots);
    for (const auto& [slot, ns] : observer.received())
        EXPECT_GE(ns, kFirstSlots.budget_ns - kSwitchesNs) << "slot " << slot;
}

TEST(GangScenario, NobodyElseIsServedInASlot) {
    for (const Slots& slots : {kFirstSlots, kSecondSlots}) {
        SlotObserver observer(slots.phase_ns == 0 ? 1 : 2, slots);
        figures_of(gangs(""), &observer);
        EXPECT_EQ(observer.strangers(), 0u) << "phase " << slots.phase_ns;
    }
}

TEST(GangScenario, ASlotWithoutWorkIsKeptAndIsNoIdlingWithWork) {
    SlotObserver observer(2, kSecondSlots);
    const Figures figures = figures_of(
        gangs(R"(, "work": {"arrivals": "periodic", "work_ms": 1, "period_ms": 3000})"), &observer);
    EXPECT_EQ(observer.strangers(), 0u);
    EXPECT_EQ(figures.vfs[2].jobs, 1u);
    EXPECT_GE(figures.idle_ns, (kSlots - 1) * (kSecondSlots.budget_ns - 2 * kSwitchesNs));
    EXPECT_EQ(figures.idle_with_work_ns / 1'000'000, 0);
}

TEST(GangScenario, WhatSlotsLeaveIsSharedByWeightWithinOneRequest) {
    for (std::uint64_t seed = 1; seed <= 3 * seeds(); ++seed) {
        Rng rng(seed);
        const auto budget = static_cast<double>(rng.between(10, 40));
        const std::int64_t weight = rng.between(1, 10);
        GpsFluid oracle;
        const Figures figures =
            figures_of(scenario(fmt::format(
                           R"({{"mode": "gang", "min_pct": {}, "latency_ms": {}}},
                   {{"weight": {}, "quantum_ms": 2, "max_gap_ms": 1000}},
                   {{"weight": 100, "quantum_ms": 2, "max_gap_ms": 1000}})",
                           budget, rng.between(10, 60), 100 * weight)),
                       &oracle);
        EXPECT_NEAR(share(figures, 2) / share(figures, 3), static_cast<double>(weight), 0.1)
            << "seed " << seed;
        EXPECT_LE(worst_lag_ms(oracle), kRequestMs) << "seed " << seed;
        EXPECT_NEAR(ms_of(figures.vfs[1].service_ns), budget / 100 * 3000, 0.03 * 3000);
    }
}

TEST(GangScenario, ItsVfNeverUsesWhatOthersLeave) {
    const std::string sleeper =
        R"(, "work": {"arrivals": "periodic", "work_ms": 1, "period_ms": 1000})";
    const Figures figures =
        figures_of(scenario(R"({"mode": "gang", "min_pct": 20, "latency_ms": 20},
                    {"quantum_ms": 2)" +
                            sleeper + "}"));
    EXPECT_LE(static_cast<double>(figures.vfs[1].service_ns), 0.2 * 3e9);
    EXPECT_GE(static_cast<double>(figures.vfs[1].service_ns), 0.19 * 3e9);
}

TEST(GangScenario, SlotsAreKeptWhileVgpudIsStopped) {
    SlotObserver observer(1, kFirstSlots);
    figures_of(gangs(""), &observer, {.stops_at_ns = 500'000'000});
    EXPECT_EQ(observer.strangers(), 0u);
    EXPECT_EQ(std::ssize(observer.received()), kSlots);
}

TEST(GangScenario, AReservationMeetsItsDeadlinesBesideSlots) {
    const Figures figures = figures_of(gangs("", R"(, "min_pct": 10, "latency_ms": 50,
        "work": {"arrivals": "periodic", "work_ms": 4, "period_ms": 50, "deadline_ms": 50})"));
    EXPECT_GE(figures.vfs[3].jobs, 59u);
    EXPECT_EQ(figures.vfs[3].missed, 0u);
}

TEST(GangScenario, GangsThatMeetAreRefusedWithThePhaseThatFits) {
    const auto parsed = parse_scenario(
        R"({"vfs": [{"mode": "gang", "min_pct": 20, "latency_ms": 20},
                    {"mode": "gang", "min_pct": 20, "latency_ms": 20, "phase_ms": 2}]})");
    ASSERT_FALSE(parsed);
    EXPECT_THAT(parsed.error(), HasSubstr("phase_ms 4.2 would fit"));
}

TEST(GangScenario, SystemsWithoutGangsRefuseIt) {
    const auto parsed = parse_scenario(
        R"({"duration_ms": 100, "vfs": [{"mode": "gang", "min_pct": 20, "latency_ms": 20}]})");
    ASSERT_TRUE(parsed) << parsed.error();
    for (const Row& row : compare(*parsed)) {
        const bool is_shipped = row.policy == kProductName;
        EXPECT_EQ(row.refusal.empty(), is_shipped) << row.policy;
        if (is_shipped) continue;
        EXPECT_THAT(row.refusal, HasSubstr("gang slots")) << row.policy;
    }
}

}  // namespace
}  // namespace vgpu::simulator
