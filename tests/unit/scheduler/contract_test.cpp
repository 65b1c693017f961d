// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/contract.h"

#include <gmock/gmock.h>
#include <limits>

namespace vgpu::daemon::scheduler {
namespace {

using ::testing::HasSubstr;

std::vector<ContractParty> equal(std::uint32_t vfs, const Contract& contract = {}) {
    std::vector<ContractParty> parties;
    for (std::uint32_t vf = 1; vf <= vfs; ++vf) parties.push_back({.vf = vf, .contract = contract});
    return parties;
}

std::string cause_of(const std::vector<ContractParty>& parties, const Engine& engine = {}) {
    const auto admission = admit_for_table(parties, engine);
    return admission ? "admitted" : admission.error().cause;
}

TEST(Contract, EachFieldIsCheckedByItself) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::pair<Contract, const char*> wrong[] = {
        {{.weight = 0}, "weight is 0; it must be 1 to 10000"},
        {{.weight = 10'001}, "weight is 10001"},
        {{.min_pct = -1}, "min_pct is -1; it must be 0 to 100"},
        {{.min_pct = nan}, "min_pct is nan"},
        {{.max_pct = 0}, "max_pct is 0"},
        {{.max_pct = 100.5}, "max_pct is 100.5"},
        {{.burst_ms = -2}, "burst_ms is -2"},
        {{.latency_ms = 1e9}, "latency_ms is 1e+09"},
        {{.max_gap_ms = 0}, "max_gap_ms is 0"},
        {{.quantum_ms = 0}, "quantum_ms is 0"},
        {{.quantum_ms = 0.01}, "quantum_ms is 0.01; it must be 0.1 to 1000"},
        {{.preempt_timeout_ms = 0}, "preempt_timeout_ms is 0"},
        {{.latency_ms = 5}, "latency_ms 5 without min_pct"},
        {{.min_pct = 30, .max_pct = 20}, "min_pct 30 is more than max_pct 20"},
        {{.min_pct = 20, .max_pct = 50, .latency_ms = 100}, "burst_ms 20 would fit"},
    };
    for (const auto& [contract, words] : wrong) {
        const auto result = validate({.vf = 4, .contract = contract});
        ASSERT_FALSE(result) << words;
        EXPECT_EQ(result.error().id, ErrorId::OutOfRange);
        EXPECT_THAT(result.error().cause, HasSubstr(words));
        EXPECT_THAT(result.error().cause, HasSubstr("VF 4"));
    }
}

TEST(Contract, TooMuchReservedIsRefusedAndTheNumberItNamesFits) {
    auto parties = equal(4, {.min_pct = 20, .latency_ms = 20});
    EXPECT_EQ(cause_of(parties), "admitted");
    parties[2].contract.min_pct = 40;
    const std::string cause = cause_of(parties);
    EXPECT_THAT(cause, HasSubstr("VF 1: min_pct 20 every 20 ms"));
    EXPECT_THAT(cause, HasSubstr("% of the engine are needed and 90 % can be reserved"));
    const auto at = cause.rfind("min_pct ");
    parties[0].contract.min_pct = std::stod(cause.substr(at + 8)) - 0.01;
    EXPECT_EQ(cause_of(parties), "admitted") << cause;
}

TEST(Contract, ABudgetShorterThanTheShortestRunIsRefused) {
    const auto parties = equal(2, {.min_pct = 1, .latency_ms = 2});
    EXPECT_THAT(cause_of(parties),
                HasSubstr("the shortest run is 0.1 ms; min_pct 5.000 would fit"));
}

TEST(Contract, ALowerPriorityClassNeedsAReservationToKeepItsGap) {
    auto parties = equal(2);
    parties[1].contract.priority_class = PriorityClass::Low;
    const std::string cause = cause_of(parties);
    EXPECT_THAT(cause, HasSubstr("VF 2: higher priority classes may take all of the engine"));
    parties[1].contract.min_pct = 5;
    EXPECT_EQ(cause_of(parties), "admitted");
}

TEST(Contract, BudgetsAreTakenAheadAsFarAsTheReservationKeepsTheGap) {
    const std::pair<double, std::int64_t> cases[] = {
        {216, 4}, {215, 3}, {108, 1}, {107, 0}, {72, 0}, {71, 4 /* weights keep it */}};
    for (const auto& [gap_ms, ahead] : cases) {
        const auto admission =
            admit_for_table(equal(2, {.min_pct = 10, .latency_ms = 40, .max_gap_ms = gap_ms}), {});
        ASSERT_TRUE(admission) << admission.error().cause;
        EXPECT_EQ(admission->terms[0].policy.reservation.ahead, ahead) << gap_ms;
        EXPECT_EQ(admission->terms[0].table_gap_ns == kNoGapLimit, gap_ms >= 72) << gap_ms;
    }
}

TEST(Contract, UnitsBecomeThoseOfTheScheduler) {
    const auto admission = admit_for_table(equal(2, {.weight = 7,
                                                     .min_pct = 10,
                                                     .max_pct = 25,
                                                     .burst_ms = 12,
                                                     .latency_ms = 40,
                                                     .max_gap_ms = 1000,
                                                     .quantum_ms = 2,
                                                     .mode = SlotMode::Strict}),
                                           {});
    ASSERT_TRUE(admission) << admission.error().cause;
    const VfPolicy& policy = admission->terms[0].policy;
    EXPECT_EQ(policy.weight, 7u);
    EXPECT_EQ(policy.reservation,
              (Reservation{.budget_ns = 4'000'000, .period_ns = 40'000'000, .ahead = 4}));
    EXPECT_EQ(policy.cap, (Cap{.rate_ppm = 250'000, .burst_ns = 12'000'000}));
    EXPECT_EQ(policy.request_ns, 2'000'000);
    EXPECT_TRUE(policy.is_strict);
    EXPECT_NEAR(admission->reserved, 2 * (4.0 + 0.2) / 40, 1e-9);
}

TEST(Contract, ForATableTheWeightsKeepTheGapOfWhatReservationsLeave) {
    auto parties = equal(3, {.max_gap_ms = 60});
    parties[2].contract.min_pct = 10;
    parties[2].contract.latency_ms = 20;
    const auto admission = admit_for_table(parties, {});
    ASSERT_TRUE(admission) << admission.error().cause;
    const double reserved = (2.0 + 0.2) / 20, budgets_ms = 2 * (2.0 + 0.2);
    EXPECT_NEAR(admission->reserved, reserved, 1e-9);
    EXPECT_NEAR(static_cast<double>(admission->terms[0].table_gap_ns),
                (60 * (1 - reserved) - budgets_ms) * 1e6, 10);
    EXPECT_EQ(admission->terms[2].table_gap_ns, kNoGapLimit) << "its reservation keeps it";
    EXPECT_EQ(admission->terms[0].policy.request_ns, 6'000'000) << "the planner shortens slices";
}

TEST(Contract, ForATableReservationsThatLeaveNoGapAreRefusedAndTheGapItNamesFits) {
    auto parties = equal(2, {.max_gap_ms = 20});
    parties[1].contract = {.min_pct = 80, .latency_ms = 50};
    const auto refused = admit_for_table(parties, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NoSchedule);
    const std::string cause = refused.error().cause;
    EXPECT_THAT(cause, HasSubstr("VF 1: reservations take"));
    parties[0].contract.max_gap_ms = std::stod(cause.substr(cause.rfind("max_gap_ms ") + 11));
    EXPECT_TRUE(admit_for_table(parties, {})) << cause;
}

TEST(Contract, NothingIsAdmittedToNobody) {
    const auto admission = admit_for_table({}, {});
    ASSERT_TRUE(admission);
    EXPECT_TRUE(admission->terms.empty());
}

// --- gangs

Contract gang(double min_pct, double latency_ms, double phase_ms = 0) {
    return {
        .min_pct = min_pct, .latency_ms = latency_ms, .mode = SlotMode::Gang, .phase_ms = phase_ms};
}

TEST(GangContract, IsASlotOfEachPeriodAndNothingAhead) {
    auto parties = equal(2);
    parties[1].contract = gang(20, 20, 2.5);
    const auto admission = admit_for_table(parties, {});
    ASSERT_TRUE(admission) << admission.error().cause;
    const TableTerms& terms = admission->terms[1];
    EXPECT_TRUE(terms.policy.is_gang);
    EXPECT_EQ(terms.policy.reservation,
              (Reservation{.budget_ns = 4'000'000, .period_ns = 20'000'000, .ahead = 0}));
    EXPECT_EQ(terms.policy.phase_ns, 2'500'000);
    EXPECT_EQ(terms.table_gap_ns, kNoGapLimit);
    EXPECT_NEAR(admission->reserved, 4.2 / 20, 1e-9);
}

TEST(GangContract, IsSaidWhole) {
    Contract capped = gang(20, 20);
    capped.max_pct = 50;
    const std::pair<Contract, const char*> wrong[] = {
        {gang(0, 0), "mode gang without min_pct"},
        {gang(20, 0), "mode gang without latency_ms"},
        {gang(20, 20, 20), "phase_ms 20 is not within latency_ms 20"},
        {gang(20, 20, -1), "phase_ms is -1; it must be 0 to 10000"},
        {capped, "mode gang with max_pct 50"},
        {{.phase_ms = 3}, "phase_ms 3 without mode gang"},
    };
    for (const auto& [contract, words] : wrong) {
        const auto result = validate({.vf = 4, .contract = contract});
        ASSERT_FALSE(result) << words;
        EXPECT_EQ(result.error().id, ErrorId::OutOfRange);
        EXPECT_THAT(result.error().cause, HasSubstr(words));
    }
}

TEST(GangContract, SlotsThatMeetAreRefusedAndThePhaseItNamesFits) {
    auto parties = equal(3);
    parties[0].contract = gang(20, 20, 18);
    parties[2].contract = gang(10, 20, 1);
    const std::string cause = cause_of(parties);
    EXPECT_THAT(cause, HasSubstr("VF 3: its slots (phase_ms 1 of 20 ms) overlap those of VF 1"));
    const auto at = cause.rfind("phase_ms ");
    parties[2].contract.phase_ms = std::stod(cause.substr(at + 9));
    EXPECT_EQ(cause_of(parties), "admitted") << cause;
    EXPECT_NEAR(parties[2].contract.phase_ms, 2.2, 1e-9) << "behind the slot and its switches";
}

TEST(GangContract, SlotsOfPeriodsWithoutACommonMeasureAlwaysMeet) {
    auto parties = equal(2);
    parties[0].contract = gang(20, 20);
    parties[1].contract = gang(20, 21, 10);
    EXPECT_THAT(cause_of(parties), HasSubstr("there is no room next to the other gangs"));
    parties[1].contract = gang(10, 40, 10);
    EXPECT_EQ(cause_of(parties), "admitted");
}

TEST(GangContract, AReservationOfAShortPeriodMustFitBesideAWholeSlot) {
    auto parties = equal(2);
    parties[0].contract = gang(20, 100);
    parties[1].contract = {.min_pct = 10, .latency_ms = 10, .max_gap_ms = 100};
    EXPECT_THAT(cause_of(parties), HasSubstr("VF 2: min_pct 10 every 10 ms"))
        << "the slot is 20 ms long";
    parties[1].contract.latency_ms = 50;
    EXPECT_EQ(cause_of(parties), "admitted");
}

}  // namespace
}  // namespace vgpu::daemon::scheduler
