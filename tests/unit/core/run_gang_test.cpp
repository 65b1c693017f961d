// SPDX-License-Identifier: MIT
//
// Gang slots as the scheduler keeps them with nobody above it, on a virtual clock: when their VFs
// are in the engine, that VFs of several GPUs are there together, and what others notice of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/core/record.h"
#include "tests/unit/core/rig.h"

extern "C" {
#include "pf-driver/core/run/internal.h"
}

namespace vgpu::test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kPeriod = 20 * kMs;
constexpr std::uint64_t kSlot = 4 * kMs;
constexpr std::uint64_t kPhase = 5 * kMs;
/// A switch into the engine, and the VF before it leaving.
constexpr std::uint64_t kLate = 400 * kUs;

vgpu_pf_contract gang(std::uint64_t slot_ns = kSlot, std::uint64_t period_ns = kPeriod,
                      std::uint64_t phase_ns = kPhase) {
    vgpu_pf_contract contract{};
    contract.budget_ns = slot_ns;
    contract.period_ns = period_ns;
    contract.phase_us = static_cast<std::uint32_t>(phase_ns / kUs);
    contract.flags = VGPU_PF_CONTRACT_GANG;
    return contract;
}

/// VF1 is in a gang, VF2 its neighbour; both have endless work.
int start_beside_one(Rig& rig) {
    rig.make_busy(1);
    rig.make_busy(2);
    return rig.set_contracts({{1, 6000}, {2, 6000}}, {{1, gang()}});
}

/// Every run of `vf` lies in a slot, a switch late at most; the slots that were kept.
void expect_in_slots(const Record& record, std::uint32_t vf, std::size_t min_slots,
                     std::uint64_t phase_ns = kPhase) {
    std::size_t whole = 0;
    for (const Interval& run : record.of(vf)) {
        const std::uint64_t into = (run.start + kPeriod - phase_ns) % kPeriod;
        EXPECT_LE(into, kSlot) << "begins at " << run.start;
        EXPECT_LE(into + run.ns(), kSlot + kLate) << "begins at " << run.start;
        if (into <= kLate && run.ns() >= kSlot - kLate) ++whole;
    }
    EXPECT_GE(whole, min_slots);
}

TEST(Gang, RunsInItsSlotsAndAtNoOtherTime) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}, {3, 6000}}, {{1, gang()}}), 0)
        << rig.message();
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(10 * kSecond);
    expect_in_slots(record, 1, 499);
    EXPECT_NEAR(record.share(1), 0.2, 0.005);
    EXPECT_NEAR(record.share(2), 0.4, 0.005);
    EXPECT_NEAR(record.share(3), 0.4, 0.005);
}

TEST(Gang, VfsOfOnePeriodAndPhaseOnSeveralGpusAreInTheirEnginesTogether) {
    Rig first, second;
    first.make_busy(1);
    second.make_busy(1);
    second.make_busy(2);
    second.gpu.run_for(13 * kMs + 377 * kUs);
    second.make_busy(3);
    second.gpu.overrun = [](std::uint32_t vf) { return vf == 2 ? 150 * kUs : 0; };
    ASSERT_EQ(first.set_contracts({{1, 6000}}, {{1, gang()}}), 0);
    ASSERT_EQ(second.set_contracts({{1, 6000}, {2, 2000}, {3, 7000}}, {{2, gang()}}), 0);
    const std::uint64_t begin = std::max(first.gpu.now(), second.gpu.now()) / kSecond + 1;
    first.gpu.run_for(begin * kSecond - first.gpu.now());
    second.gpu.run_for(begin * kSecond - second.gpu.now());
    Record a(first), b(second);
    first.gpu.run_for(10 * kSecond);
    second.gpu.run_for(10 * kSecond);
    ASSERT_EQ(a.of(1).size(), 500u);
    ASSERT_EQ(b.of(2).size(), 500u);
    std::uint64_t together = 0;
    for (std::size_t i = 0; i < 500; ++i) {
        const Interval x = a.of(1)[i], y = b.of(2)[i];
        const std::uint64_t from = std::max(x.start, y.start), to = std::min(x.end, y.end);
        if (to > from) together += to - from;
    }
    EXPECT_GE(together, 500 * (kSlot - kLate)) << "of " << 500 * kSlot;
}

TEST(Gang, KeepsItsSlotWithoutWork) {
    Rig rig;
    rig.make_ready(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}}, {{1, gang()}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(2 * kSecond);
    expect_in_slots(record, 1, 99);
    EXPECT_NEAR(static_cast<double>(record.service(2)), 1.6e9, 0.05e9);
}

TEST(Gang, AloneWithEndlessWorkGetsItsSlotsAndNoMore) {
    Rig rig;
    rig.make_busy(1);
    ASSERT_EQ(rig.set_contracts({{1, 6000}}, {{1, gang()}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    rig.gpu.run_for(10 * kSecond);
    expect_in_slots(record, 1, 499);
    EXPECT_NEAR(static_cast<double>(record.service(1)), 2e9, 0.02e9);
}

TEST(Gang, WorkThatComesInTheMiddleOfASlotIsServedAtOnce) {
    Rig rig;
    ASSERT_EQ(start_beside_one(rig), 0);
    rig.gpu.run_for(100 * kMs);
    rig.gpu.vf(1).work_ns = 0;
    for (int i = 0; i < 50; ++i) {
        const std::uint64_t now = rig.gpu.now();
        const std::uint64_t slot = (now / kPeriod + 1) * kPeriod + kPhase;
        rig.gpu.run_for(slot + kMs - now);
        rig.gpu.give_work(1, 500 * kUs);
        rig.gpu.run_for(kMs);
        EXPECT_EQ(rig.gpu.vf(1).work_ns, 0u) << "slot " << i;
    }
}

TEST(Gang, GoesBeforeReservationsThatKeepTheirBudgets) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    constexpr std::uint64_t kBudget = 2 * kMs, kShort = 10 * kMs;
    ASSERT_EQ(rig.set_contracts({{1, 6000}, {2, 1000}, {3, 6000}},
                                {{1, gang()}, {2, reservation(kBudget, kShort)}}),
              0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    const std::uint64_t from = rig.gpu.now();
    rig.gpu.run_for(4 * kSecond);
    expect_in_slots(record, 1, 199);
    for (std::uint64_t at = from; at + 2 * kShort <= from + 4 * kSecond; at += kShort)
        EXPECT_GE(record.service(2, at, at + 2 * kShort), kBudget) << "from " << at;
    EXPECT_GT(record.share(2), 0.2 * 0.98);
}

TEST(Gang, SlotsOfSeveralVfsFollowOneAnother) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}, {3, 6000}},
                                {{1, gang()}, {2, gang(kSlot, kPeriod, kPhase + kSlot + kMs)}}),
              0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(2 * kSecond);
    expect_in_slots(record, 1, 99);
    expect_in_slots(record, 2, 99, kPhase + kSlot + kMs);
    EXPECT_NEAR(record.share(3), 0.6, 0.01);
}

TEST(Gang, AVfThatStopsTheTableIsNotInterrupted) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    ASSERT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}}, {{1, gang()}, {2, gang(kMs, kPeriod, 0)}}),
              0);
    rig.load_driver(2);
    EXPECT_EQ(rig.get_vf(2).state, static_cast<std::uint32_t>(VGPU_PF_VF_READY));
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(2 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(2)), 0.1e9, 0.01e9);
}

TEST(Gang, ADriverThatLoadsIsNotKeptToItsSlots) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    ASSERT_EQ(
        rig.set_contracts({{1, 6000}, {2, 6000}}, {{2, gang(kMs, 10 * kSecond, 9 * kSecond)}}), 0);
    rig.gpu.run_for(100 * kMs);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(kMs);
    ASSERT_TRUE(rig.vf(2).access.granted);
    rig.gpu.give_work(2, 5 * kMs);
    rig.gpu.run_for(50 * kMs);
    EXPECT_EQ(rig.gpu.vf(2).work_ns, 0u);
    rig.gpu.guest_acknowledges(2);
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(kMs);
    ASSERT_FALSE(rig.vf(2).access.granted);
    rig.gpu.give_work(2, 5 * kMs);
    rig.gpu.run_for(50 * kMs);
    EXPECT_EQ(rig.gpu.vf(2).work_ns, 5 * kMs);
}

TEST(Gang, KeepsItsSlotWithoutWorkInFullAccessToo) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    ASSERT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}}, {{2, gang()}}), 0);
    rig.gpu.run_for(100 * kMs);
    const std::uint64_t before = rig.get_vf(2).switches;
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.run_for(kSecond);
    EXPECT_LE(rig.get_vf(2).switches - before, 60u) << "one for each slot, not one after another";
}

TEST(Gang, LeavesTheEngineOutsideItsSlotsWhenItsFullAccessEnds) {
    Rig rig;
    rig.provision(2);
    ASSERT_EQ(rig.set_contracts({{2, 6000}}, {{2, gang(kMs, 10 * kSecond, 9 * kSecond)}}), 0);
    rig.gpu.guest_sends(2, MAILBOX_REQ_GPU_INIT_ACCESS);
    rig.gpu.give_work(2, kEndless);
    rig.gpu.run_for(50 * kMs);
    ASSERT_EQ(rig.gpu.loaded(), 2u);
    rig.gpu.guest_acknowledges(2);
    rig.gpu.guest_sends(2, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.run_for(5 * kMs);
    EXPECT_EQ(rig.gpu.loaded(), 0u);
}

TEST(Gang, GoesBackToItsEntriesWhenTheContractEnds) {
    Rig rig;
    ASSERT_EQ(start_beside_one(rig), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.set_table({{1, 6000}, {2, 6000}}), 0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(2 * kSecond);
    EXPECT_NEAR(record.share(1), 0.5, 0.01);
}

TEST(Gang, SlotsGoOnWhereTheyWereAfterTheDeathOfTheCore) {
    Rig rig;
    ASSERT_EQ(start_beside_one(rig), 0);
    rig.gpu.run_for(kSecond);
    rig.restart_core();
    vgpu_pf_run_table table{};
    ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.contracts[0].flags, static_cast<std::uint32_t>(VGPU_PF_CONTRACT_GANG));
    EXPECT_EQ(table.contracts[0].phase_us, kPhase / kUs);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    rig.gpu.run_for(2 * kSecond);
    expect_in_slots(record, 1, 99);
}

TEST(Gang, IsNotNotifiedAsWaitingOrAsleep) {
    Rig rig({}, [](vgpu_pf_params& params) { params.max_gap_ms = 5; });
    ASSERT_EQ(start_beside_one(rig), 0);
    rig.gpu.run_for(kSecond);
    const std::size_t before = rig.events(VGPU_PF_EVENT_IDLE, 1).size();
    Record record(rig);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_IDLE, 1).size(), before);
    expect_in_slots(record, 1, 49);
}

TEST(Gang, TermsThatMakeNoSenseAreRefusedWithWords) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    const auto refused = [&](const std::map<std::uint32_t, vgpu_pf_contract>& contracts,
                             const char* words) {
        EXPECT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}}, contracts), -EINVAL);
        EXPECT_THAT(rig.message(), HasSubstr(words));
    };
    vgpu_pf_contract wrong = gang();
    wrong.ahead = 1;
    refused({{1, wrong}}, "VF1 is in a gang");
    wrong = gang();
    wrong.rate_ppm = 500'000;
    wrong.burst_ns = 50 * kMs;
    refused({{1, wrong}}, "VF1 is in a gang");
    refused({{1, gang(kSlot, kPeriod, kPeriod)}}, "VF1 is in a gang");
    wrong = vgpu_pf_contract{};
    wrong.flags = VGPU_PF_CONTRACT_GANG;
    refused({{2, wrong}}, "VF2 is in a gang");
    wrong = reservation(kSlot, kPeriod);
    wrong.phase_us = 1;
    refused({{2, wrong}}, "VF2 has a phase of 1 us but is not in a gang");
    wrong = gang();
    wrong.flags |= 4;
    refused({{1, wrong}}, "unknown flags 0x6");
    refused({{1, gang()}, {2, gang(kSlot, kPeriod, kPhase + kSlot - kUs)}},
            "gang slots of VF1 and VF2 overlap");
    refused({{1, gang()}, {2, gang(kMs, 30 * kMs, 7 * kMs)}}, "gang slots of VF1 and VF2 overlap");
    EXPECT_EQ(rig.set_contracts({{1, 6000}, {2, 6000}},
                                {{1, gang()}, {2, gang(kSlot, kPeriod, kPhase + kSlot)}}),
              0);
}

/// Random slots, neighbours, work and overruns: a gang's VF is never in the engine outside of its
/// slots, and a slot is late by no more than a switch and what a neighbour was overrun by.
TEST(Gang, SlotsAreKeptWhateverTheNeighboursDo) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        const auto rng = [&](std::uint64_t min, std::uint64_t max) {
            return std::uniform_int_distribution<std::uint64_t>(min, max)(random);
        };
        Rig rig;
        for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
        const std::uint64_t slot = rng(500, 4000) * kUs, period = rng(10, 30) * kMs;
        const std::uint64_t phase = rng(0, 9) * kMs;
        constexpr std::uint64_t kWorst = 300 * kUs;
        rig.gpu.overrun = [&](std::uint32_t vf) {
            return vf != 1 && rng(0, 3) == 0 ? rng(0, kWorst) : 0;
        };
        ASSERT_EQ(
            rig.set_contracts({{1, 3000}, {2, 2000}, {3, 700}, {4, 5000}},
                              {{1, gang(slot, period, phase)}, {2, reservation(kMs, 9 * kMs)}}),
            0)
            << rig.message();
        rig.gpu.run_for(100 * kMs);
        Record record(rig);
        rig.live_at_random(4, 200, rng);
        ASSERT_GE(record.of(1).size(), 30u);
        for (const Interval& run : record.of(1)) {
            const std::uint64_t into = (run.start + period - phase) % period;
            EXPECT_LE(into, kLate + kWorst) << "seed " << seed;
            EXPECT_LE(into + run.ns(), slot + kLate) << "seed " << seed;
        }
    }
}

TEST(Gang, NoSlotIsOpenBeforeTheFirstOneOfTheClock) {
    vgpu_vf vf{};
    vf.contract.terms = gang();
    vgpu_pf_run_gang_update(&vf, kPhase - kMs);
    EXPECT_EQ(vf.contract.budget_ns, 0);
    EXPECT_EQ(vgpu_pf_run_gang_next(&vf, kPhase - kMs), kPhase);
    vgpu_pf_run_gang_update(&vf, kPhase + kMs);
    EXPECT_EQ(vf.contract.budget_ns, static_cast<std::int64_t>(kSlot - kMs));
    EXPECT_EQ(vgpu_pf_run_gang_next(&vf, kPhase + kMs), kPhase + kPeriod);
}

}  // namespace
}  // namespace vgpu::test
