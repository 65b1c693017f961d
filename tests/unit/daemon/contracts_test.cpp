// SPDX-License-Identifier: MIT
//
// Service contracts through vgpud: from options and profiles to the run table, into the state and
// back, refused with a number that fits; and lags that know of reserved service and of caps.
#include "daemon/service/config/change_plan.h"
#include "daemon/service/slicing/gpu_schedule.h"
#include "tests/unit/daemon/core_abilities.h"
#include "tests/unit/daemon/some_state.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace vgpu::daemon {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::FakePf;
using ::testing::HasSubstr;
using testing::World;

GpuSchedule::Member member(std::uint32_t vf, std::uint32_t weight, const VfQos& qos = {},
                           std::uint32_t quantum_us = 2000) {
    return {.vf = vf, .weight = weight, .quantum_us = quantum_us, .qos = qos};
}

VfQos reserved(double min_pct, double latency_ms) {
    VfQos qos;
    qos.min_pct = min_pct;
    qos.latency_ms = latency_ms;
    return qos;
}

VfQos capped(double max_pct, double burst_ms = 0) {
    VfQos qos;
    qos.max_pct = max_pct;
    qos.burst_ms = burst_ms;
    return qos;
}

VfQos in_priority_class(scheduler::PriorityClass priority_class, double min_pct = 0) {
    VfQos qos;
    qos.priority_class = priority_class;
    qos.min_pct = min_pct;
    return qos;
}

VfQos gang(double min_pct, double latency_ms, double phase_ms) {
    VfQos qos = reserved(min_pct, latency_ms);
    qos.mode = scheduler::SlotMode::Gang;
    qos.phase_ms = phase_ms;
    return qos;
}

vgpu_pf_run_table table_of(const std::vector<GpuSchedule::Member>& members) {
    GpuSchedule schedule;
    schedule.set_members(members, 60, 1s);
    for (const auto& one : members) schedule.on_wake(one.vf, 1s);
    const auto table = schedule.make_table(1, 1s);
    EXPECT_TRUE(table) << (table ? "" : table.error().cause);
    return table.value_or(vgpu_pf_run_table{});
}

std::map<std::uint32_t, std::uint64_t> totals_of(const vgpu_pf_run_table& table) {
    std::map<std::uint32_t, std::uint64_t> totals;
    for (std::uint32_t i = 0; i < table.count; ++i)
        totals[table.entries[i].vf] += table.entries[i].quantum_us;
    return totals;
}

// --- what the PF core is told

TEST(Contracts, WeightsAloneMakeATableWithoutContracts) {
    const vgpu_pf_run_table table = table_of({member(1, 1), member(2, 3)});
    for (const vgpu_pf_contract& contract : table.contracts) {
        EXPECT_EQ(contract.budget_ns, 0u);
        EXPECT_EQ(contract.rate_ppm, 0u);
        EXPECT_EQ(contract.priority_class, 0u);
        EXPECT_EQ(contract.flags, 0u);
        EXPECT_EQ(contract.preempt_timeout_us, 0u);
    }
    EXPECT_EQ(totals_of(table).at(2), 3 * totals_of(table).at(1));
}

TEST(Contracts, EachPartReachesTheTable) {
    VfQos all = reserved(10, 20);
    all.max_pct = 25;
    all.burst_ms = 8;
    all.mode = scheduler::SlotMode::Strict;
    all.preempt_timeout_ms = 250;
    const vgpu_pf_run_table table = table_of({member(1, 1), member(5, 2, all)});
    const vgpu_pf_contract& contract = table.contracts[4];
    EXPECT_EQ(contract.budget_ns, 2'000'000u);
    EXPECT_EQ(contract.period_ns, 20'000'000u);
    EXPECT_EQ(contract.ahead, 1u) << "(2 + 1) (20 - 2) ms are within the longest gap of 60 ms";
    EXPECT_EQ(contract.rate_ppm, 250'000u);
    EXPECT_EQ(contract.burst_ns, 8'000'000u);
    EXPECT_EQ(contract.flags, static_cast<std::uint32_t>(VGPU_PF_CONTRACT_STRICT));
    EXPECT_EQ(contract.preempt_timeout_us, 250'000u);
    EXPECT_EQ(totals_of(table).at(5), 2 * totals_of(table).at(1)) << "weights share the rest";
}

TEST(Contracts, ABucketHoldsABudgetAndASlice) {
    VfQos both = reserved(20, 20);
    both.max_pct = 30;
    both.burst_ms = 4;
    const vgpu_pf_run_table table = table_of({member(1, 1), member(2, 1, both)});
    EXPECT_EQ(table.contracts[1].burst_ns, 6'000'000u) << "4 ms of budget, 2 ms of quantum";
}

TEST(Contracts, EachPriorityClassHasATableOfItsOwn) {
    const vgpu_pf_run_table table =
        table_of({member(1, 1, in_priority_class(scheduler::PriorityClass::High)),
                  member(2, 2, in_priority_class(scheduler::PriorityClass::High)),
                  member(3, 1, in_priority_class(scheduler::PriorityClass::Low, 5)),
                  member(4, 5, in_priority_class(scheduler::PriorityClass::Low, 5))});
    const auto totals = totals_of(table);
    EXPECT_EQ(totals.at(2), 2 * totals.at(1));
    EXPECT_EQ(totals.at(4), 5 * totals.at(3));
    EXPECT_EQ(table.contracts[0].priority_class, 0u);
    EXPECT_EQ(table.contracts[3].priority_class, 2u);
}

TEST(Contracts, AGangIsASlotOfTheTableWithAPhase) {
    const vgpu_pf_run_table table = table_of({member(1, 1), member(2, 9, gang(20, 20, 2.5))});
    const vgpu_pf_contract& contract = table.contracts[1];
    EXPECT_EQ(contract.budget_ns, 4'000'000u);
    EXPECT_EQ(contract.period_ns, 20'000'000u);
    EXPECT_EQ(contract.ahead, 0u);
    EXPECT_EQ(contract.phase_us, 2500u);
    EXPECT_EQ(contract.flags, static_cast<std::uint32_t>(VGPU_PF_CONTRACT_GANG));
    EXPECT_EQ(table.reserve_count, 0u) << "it does not preempt when it wakes";
}

TEST(Contracts, AGangNeitherCompetesNorIsOwedAnything) {
    GpuSchedule schedule;
    const std::vector<GpuSchedule::Member> members{member(1, 1), member(2, 1),
                                                   member(3, 1, gang(20, 20, 0))};
    schedule.set_members(members, 60, 1s);
    for (const std::uint32_t vf : {1u, 2u, 3u}) schedule.on_wake(vf, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.installed(1s);
    Nanoseconds now = 1s;
    for (int i = 0; i < 100; ++i)
        for (const std::uint32_t vf : {1u, 2u, 3u}) {
            now += 2ms;
            schedule.on_run(vf, 2'000'000, now, vf == 3 ? 2'000'000 : 0);
            EXPECT_EQ(schedule.lag_quanta(3), 0.0);
            EXPECT_LE(schedule.worst_lag_quanta(1), 0.51);
        }
    EXPECT_NEAR(schedule.ideal_share(1), 0.4, 1e-9);
    EXPECT_NEAR(schedule.ideal_share(3), 0.2, 1e-9);
    EXPECT_FALSE(schedule.needs_table(now + 100ms)) << "nothing happened that needs another one";
}

TEST(Contracts, ATableWithAGangIsAdoptedByTheNextVgpud) {
    const std::vector<GpuSchedule::Member> members{member(1, 1), member(2, 1, gang(20, 20, 5))};
    const vgpu_pf_run_table table = table_of(members);
    GpuSchedule next;
    next.set_members(members, 60, 2s);
    next.adopt(table, 2s);
    EXPECT_FALSE(next.needs_table(2s + 20ms));
    vgpu_pf_run_table other = table;
    other.contracts[1].phase_us += 1;
    GpuSchedule another;
    another.set_members(members, 60, 2s);
    another.adopt(other, 2s);
    EXPECT_TRUE(another.needs_table(2s + 20ms));
}

// --- refusals

TEST(Contracts, TooMuchIsRefusedWithTheVfTheShortageAndANumberThatFits) {
    std::vector<GpuSchedule::Member> members{member(1, 1, reserved(50, 20)),
                                             member(2, 1, reserved(50, 20))};
    const auto refused = GpuSchedule::admit(members, 60);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("VF 1: min_pct 50 every 20 ms does not fit: with the reservations that "
                          "can delay it, two switches of 0.1 ms each and 0.2 ms of waiting, "
                          "103.0 % of the engine are needed and 90 % can be reserved; min_pct "
                          "36.99 would fit"));
    members[0].qos.min_pct = 36.99;
    EXPECT_TRUE(GpuSchedule::admit(members, 60));
}

TEST(Contracts, ALowerPriorityClassWithoutAReservationIsRefusedAndTheOneItNamesFits) {
    std::vector<GpuSchedule::Member> members{
        member(1, 1), member(2, 1, in_priority_class(scheduler::PriorityClass::Low))};
    const auto refused = GpuSchedule::admit(members, 60);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("requires a reservation"));
    const auto at = refused.error().cause.rfind("min_pct ");
    members[1].qos.min_pct = std::stod(refused.error().cause.substr(at + 8));
    EXPECT_TRUE(GpuSchedule::admit(members, 60));
}

TEST(Contracts, AWeightTooSmallBesideReservationsIsRefusedInTheTimeThatPasses) {
    std::vector<GpuSchedule::Member> members{member(1, 60), member(2, 10'000),
                                             member(3, 100, reserved(10, 20))};
    const auto refused = GpuSchedule::admit(members, 30);
    ASSERT_FALSE(refused);
    const std::string cause = refused.error().cause;
    EXPECT_THAT(cause, HasSubstr("VF 1 with weight 60 of 10160"));
    EXPECT_THAT(cause, HasSubstr("max_gap_ms is 30"));
    const auto at = cause.find("or max_gap_ms ");
    ASSERT_NE(at, std::string::npos) << cause;
    const auto gap = static_cast<std::uint32_t>(std::stoul(cause.substr(at + 14)));
    EXPECT_GT(gap, 30u);
    EXPECT_TRUE(GpuSchedule::admit(members, gap + 1)) << cause;
}

TEST(Contracts, AVfMayAskForAShorterGapThanItsGpu) {
    std::vector<GpuSchedule::Member> members{member(1, 1), member(2, 9), member(3, 9)};
    members[0].qos.max_gap_ms = 10;
    GpuSchedule schedule;
    schedule.set_members(members, 60, 1s);
    const auto table = schedule.make_table(1, 1s);
    ASSERT_TRUE(table);
    std::uint64_t gap = 0, longest = 0;
    for (std::uint32_t turn = 0; turn < 2 * table->count; ++turn) {
        const vgpu_pf_run_entry& entry = table->entries[turn % table->count];
        gap = entry.vf == 1 ? 0 : gap + entry.quantum_us;
        longest = std::max(longest, gap);
    }
    EXPECT_LE(longest, 10'000u);
    members[0].qos.max_gap_ms = 1;
    EXPECT_THAT(GpuSchedule::admit(members, 60).error().cause, HasSubstr("max_gap_ms is 1"));
}

// --- lags

TEST(Contracts, WhatAReservationPaidForIsNoLag) {
    GpuSchedule schedule;
    schedule.set_members({member(1, 1), member(2, 1), member(3, 1, reserved(40, 10))}, 60, 1s);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) schedule.on_wake(vf, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.installed(1s);
    Nanoseconds now = 1s;
    for (int i = 0; i < 500; ++i)
        for (std::uint32_t vf = 1; vf <= 3; ++vf) {
            now += 2ms;
            schedule.on_run(vf, 2'000'000, now);
            now += 2ms;
            schedule.on_run(3, 2'000'000, now, 2'000'000);
        }
    for (std::uint32_t vf = 1; vf <= 3; ++vf)
        EXPECT_LE(std::abs(schedule.lag_quanta(vf)), 1.0) << vf;
    EXPECT_FALSE(schedule.needs_table(now)) << "no change, so no new plan";
    EXPECT_NEAR(schedule.account().share_total(3), 2.0 / 3, 1e-9) << "it is service all the same";
}

TEST(Contracts, AVfWithoutTokensDoesNotCompeteAndNothingIsPlannedForIt) {
    GpuSchedule schedule;
    schedule.set_members({member(1, 1, capped(10)), member(2, 1), member(3, 1)}, 60, 1s);
    for (std::uint32_t vf = 1; vf <= 3; ++vf) schedule.on_wake(vf, 1s);
    ASSERT_TRUE(schedule.make_table(1, 1s));
    schedule.installed(1s);
    Nanoseconds now = 1s;
    int tables = 0;
    for (int round = 0; round < 200; ++round) {
        schedule.on_wake(1, now);
        now += 2ms;
        schedule.on_run(1, 2'000'000, now);
        schedule.on_throttled(1);
        EXPECT_TRUE(schedule.is_throttled(1));
        for (int i = 0; i < 5; ++i)
            for (std::uint32_t vf = 2; vf <= 3; ++vf) {
                now += 2ms;
                schedule.on_run(vf, 2'000'000, now);
            }
        if (schedule.needs_table(now)) {
            ++tables;
            ASSERT_TRUE(schedule.make_table(2, now));
            schedule.installed(now);
        }
    }
    EXPECT_EQ(tables, 0);
    EXPECT_LE(std::abs(schedule.lag_quanta(2)), 1.0);
}

TEST(Contracts, IdealSharesKnowReservationsAndCaps) {
    GpuSchedule schedule;
    schedule.set_members({member(1, 1, reserved(20, 10)), member(2, 1, capped(10)), member(3, 2)},
                         60, 1s);
    EXPECT_EQ(schedule.ideal_share(1), 0.0) << "no work";
    for (std::uint32_t vf = 1; vf <= 3; ++vf) schedule.on_wake(vf, 1s);
    EXPECT_DOUBLE_EQ(schedule.ideal_share(2), 0.1);
    EXPECT_DOUBLE_EQ(schedule.ideal_share(1), 0.2 + 0.7 / 3);
    EXPECT_DOUBLE_EQ(schedule.ideal_share(3), 0.7 * 2 / 3);
    schedule.on_run(2, 1'000'000, 1s + 1ms);
    schedule.on_throttled(2);
    EXPECT_DOUBLE_EQ(schedule.ideal_share(2), 0.1) << "it waits for tokens, it is entitled to them";
}

TEST(Contracts, AHigherPriorityClassLeavesALowerOneWhatIsReserved) {
    GpuSchedule schedule;
    schedule.set_members(
        {member(1, 1), member(2, 1, in_priority_class(scheduler::PriorityClass::Low, 5))}, 60, 1s);
    schedule.on_wake(1, 1s);
    schedule.on_wake(2, 1s);
    EXPECT_DOUBLE_EQ(schedule.ideal_share(1), 0.95);
    EXPECT_DOUBLE_EQ(schedule.ideal_share(2), 0.05);
}

TEST(Contracts, ATableThatKeepsOtherContractsIsNotAdopted) {
    const std::vector<GpuSchedule::Member> members{member(1, 1), member(2, 1, capped(20))};
    vgpu_pf_run_table table = table_of(members);
    GpuSchedule schedule;
    schedule.set_members(members, 60, 1s);
    schedule.adopt(table, 1s);
    EXPECT_FALSE(schedule.needs_table(1s + 20ms));
    table.contracts[1].rate_ppm = 300'000;
    GpuSchedule another;
    another.set_members(members, 60, 1s);
    another.adopt(table, 1s);
    EXPECT_TRUE(another.needs_table(1s + 20ms));
}

// --- through the service

TEST(Contracts, ASetIsInTheNextTableInTheStateAndOutlivesVgpud) {
    World world;
    ASSERT_TRUE(world.create({}));
    ASSERT_TRUE(world.create({{"max_pct", 50.0}}));
    world.pass(20ms);
    EXPECT_EQ(world.pf().table.contracts[1].rate_ppm, 500'000u);
    ASSERT_TRUE(world.set_vf(
        {"gpu0", 1},
        {{"min_pct", 12.5}, {"latency_ms", std::uint64_t{20}}, {"mode", std::string("strict")}}));
    world.pass(20ms);
    EXPECT_EQ(world.pf().table.contracts[0].budget_ns, 2'500'000u);
    EXPECT_EQ(world.pf().table.contracts[0].flags,
              static_cast<std::uint32_t>(VGPU_PF_CONTRACT_STRICT));
    world.start();
    const VfQos& qos = world.gpu().view(1).record.spec.qos;
    EXPECT_EQ(qos.min_pct, 12.5);
    EXPECT_EQ(qos.latency_ms, 20);
    EXPECT_EQ(qos.mode, scheduler::SlotMode::Strict);
    ASSERT_TRUE(world.set_vf({"gpu0", 1}, {{"min_pct", 0.0}, {"latency_ms", 0.0}}));
    world.pass(20ms);
    EXPECT_EQ(world.pf().table.contracts[0].budget_ns, 0u);
    EXPECT_EQ(world.gpu().view(1).record.spec.qos.mode, scheduler::SlotMode::Strict)
        << "the rest stays";
}

TEST(Contracts, ARefusedSetChangesNothing) {
    World world;
    ASSERT_TRUE(world.create({{"min_pct", 20.0}, {"latency_ms", 20.0}}));
    ASSERT_TRUE(world.create({}));
    world.pass(20ms);
    const auto refused = world.set_vf({"gpu0", 2}, {{"min_pct", 80.0}, {"latency_ms", 20.0}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("gpu0: schedule: 'gpu0-vf1': min_pct 20 every 20 ms"));
    EXPECT_EQ(world.gpu().view(2).record.spec.qos, VfQos{});
    EXPECT_EQ(world.pf().table.contracts[1].budget_ns, 0u);
}

TEST(Contracts, OptionsOutsideTheirRangeOrTypeAreRefusedByName) {
    World world;
    ASSERT_TRUE(world.create({}));
    const auto refused = [&](const Options& options) {
        const auto result = world.set_vf({"gpu0", 1}, options);
        return result ? "taken" : result.error().cause;
    };
    EXPECT_EQ(refused({{"min_pct", 101.0}}), "option 'min_pct' is 101, not within 0..100");
    EXPECT_EQ(refused({{"max_pct", std::int64_t{-1}}}),
              "option 'max_pct' is -1, not within 0.01..100");
    EXPECT_THAT(refused({{"min_pct", std::string("10")}}), HasSubstr("must be a number"));
    EXPECT_EQ(refused({{"mode", std::string("lazy")}}),
              "option 'mode' is 'lazy', not work-conserving, strict or gang");
    EXPECT_EQ(refused({{"priority_class", std::string("top")}}),
              "option 'priority_class' is 'top', not high, normal or low");
    EXPECT_THAT(refused({{"min_pc", 1.0}}), HasSubstr("did you mean 'min_pct'"));
    EXPECT_THAT(refused({{"latency_ms", 10.0}}), HasSubstr("latency_ms 10 without min_pct"));
    EXPECT_THAT(refused({{"min_pct", 20.0}, {"max_pct", 10.0}}),
                HasSubstr("min_pct 20 is more than max_pct 10"));
}

TEST(Contracts, EventsOfThePfCoreReachTheLags) {
    World world;
    ASSERT_TRUE(world.create({{"max_pct", 10.0}}));
    ASSERT_TRUE(world.create({}));
    world.pass(20ms);
    world.pf().push(VGPU_PF_EVENT_WAKE, 1, 3);
    world.step();
    world.pf().push(VGPU_PF_EVENT_IDLE, 1, VGPU_PF_IDLE_THROTTLED);
    world.step();
    EXPECT_TRUE(world.gpu().view(1).timing->is_throttled);
    world.pf().push(VGPU_PF_EVENT_WAKE, 1, 1);
    world.step();
    EXPECT_FALSE(world.gpu().view(1).timing->is_throttled);
}

// --- documents

TEST(Contracts, RecordsKeepWhatIsSpecialAndNoMore) {
    GpuRecord gpu;
    gpu.vfs[1] = {.vf = 1, .spec = {.name = "plain", .resources = {.vram_bytes = 1}}};
    gpu.vfs[2] = {.vf = 2, .spec = {.name = "special", .resources = {.vram_bytes = 1}}};
    VfQos& qos = gpu.vfs[2].spec.qos;
    qos = reserved(33.3, 7.5);
    qos.max_pct = 66.6;
    qos.burst_ms = 12.25;
    qos.max_gap_ms = 40;
    qos.preempt_timeout_ms = 0.5;
    qos.mode = scheduler::SlotMode::Strict;
    qos.priority_class = scheduler::PriorityClass::High;
    const std::string text = encode_gpu({.gpu = "gpu0", .record = gpu});
    EXPECT_EQ(text.find("qos"), text.rfind("qos"));
    EXPECT_EQ(decode_gpu(text)->record, gpu);
    const std::string wrong = testing::rewritten(
        text, [](nlohmann::json& json) { json["vfs"][1]["qos"]["mode"] = "struck"; });
    EXPECT_FALSE(decode_gpu(wrong));
}

TEST(Contracts, AProfileCarriesThemAndAChangeOfThemDisturbsNobody) {
    const auto configuration = parse_configuration(R"({
        "profiles": {"p": {"resources": {"vram": "64MiB"},
                           "scheduler": {"weight": 300, "min_pct": 12.5, "latency_ms": 20,
                                     "max_pct": 50, "priority_class": "high", "mode": "strict"}}},
        "configs": {"day": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "a"}]}]}})");
    ASSERT_TRUE(configuration) << configuration.error().cause;
    const VfQos& qos = configuration->profiles.at("p").qos;
    EXPECT_EQ(qos.min_pct, 12.5);
    EXPECT_EQ(qos.max_pct, 50);
    EXPECT_EQ(qos.priority_class, scheduler::PriorityClass::High);
    EXPECT_EQ(parse_configuration(encode_configuration(*configuration)).value(), *configuration);
    const std::vector<std::string> gpus{"gpu0"};
    const auto wanted = desired_gpus(*configuration, "day", gpus);
    ASSERT_TRUE(wanted);
    GpuInventory gpu{.id = "gpu0",
                     .vram_bytes = 256u << 20,
                     .abilities = testing::core_abilities(128u << 20),
                     .total_vfs = 8};
    gpu.vfs.push_back(
        {.vf = 1,
         .spec = {
             .name = "a", .resources = {.vram_bytes = 64u << 20}, .weight = 300, .profile = "p"}});
    const auto plan = make_change_plan(*wanted, std::vector{gpu}, {.gpus = gpus, .names = {}});
    ASSERT_TRUE(plan) << plan.error().cause;
    ASSERT_EQ(plan->steps.size(), 1u);
    EXPECT_EQ(plan->steps[0].action, Action::Set);
    EXPECT_EQ(plan->disruption(), Disruption::None);
    EXPECT_EQ(plan->steps[0].to->qos, qos);
    const auto json = nlohmann::json::parse(encode_change_plan(*plan));
    EXPECT_EQ(json.at("steps").at(0).at("to").at("min_pct"), 12.5);
    EXPECT_EQ(json.at("steps").at(0).at("from").at("priority_class"), "normal");
    EXPECT_FALSE(json.at("steps").at(0).at("to").contains("burst_ms")) << "it stays";
    perform(plan->steps[0], gpu);
    EXPECT_TRUE(
        make_change_plan(*wanted, std::vector{gpu}, {.gpus = gpus, .names = {}})->is_empty());
}

}  // namespace
}  // namespace vgpu::daemon
