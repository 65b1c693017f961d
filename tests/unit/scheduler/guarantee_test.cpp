// SPDX-License-Identifier: MIT
//
// The promises of docs/scheduling.md about reservations, caps, latency and gaps, in simulated runs.
#include "daemon/service/scheduler/contract.h"
#include "daemon/simulator/library.h"
#include "daemon/simulator/peers.h"
#include "tests/unit/scheduler/runs.h"

#include <gtest/gtest.h>
#include <cmath>

namespace vgpu::simulator {
namespace {

using daemon::scheduler::Admission;
using daemon::scheduler::Contract;
using daemon::scheduler::Engine;
using daemon::scheduler::Party;

constexpr std::int64_t kMs = 1'000'000;

Figures simulate(const Simulation& setup) {
    LibraryPolicy policy;
    return Simulator(setup, policy).run();
}

/// Follows one VF's service against rate and bucket in every window: with f(t) = service - rate * t
/// the largest rise of f is the largest excess over the rate.
class CapMeter : public Witness {
public:
    CapMeter(std::uint32_t vf, std::uint32_t rate_ppm) : vf_(vf), rate_(rate_ppm / 1e6L) {}
    void served(std::uint32_t vf, std::int64_t ns, bool, std::int64_t at_ns) override {
        if (vf != vf_) return;
        const auto served = static_cast<long double>(ns);
        const long double before = service_ - rate_ * (static_cast<long double>(at_ns) - served);
        lowest_ = std::min(lowest_, before);
        service_ += served;
        worst_ = std::max(worst_, service_ - rate_ * static_cast<long double>(at_ns) - lowest_);
    }
    [[nodiscard]] long double worst_excess_ns() const { return worst_; }

private:
    std::uint32_t vf_;
    long double rate_, service_ = 0, lowest_ = 0, worst_ = 0;
};

TEST(Caps, NoWindowHoldsMoreThanRateAndBucket) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        for (const double overrun_part : {0.0, 0.2}) {
            Simulation setup = random_setup(
                {.vfs = 6, .bursty_part = 0.4, .overrun_part = overrun_part, .seed = seed});
            const daemon::scheduler::Cap cap{.rate_ppm = 80'000, .burst_ns = 5 * kMs};
            setup.vfs[0].policy.cap = cap;
            setup.vfs[0].policy.weight = 10'000;
            setup.vfs[0].policy.reservation = {.budget_ns = kMs, .period_ns = 20 * kMs};
            CapMeter meter(1, cap.rate_ppm);
            LibraryPolicy policy;
            const Figures figures = Simulator(setup, policy, &meter).run();
            const auto bucket =
                static_cast<long double>(cap.burst_ns + figures.vfs[1].worst_overrun_ns);
            EXPECT_LE(meter.worst_excess_ns(), bucket + 1) << "seed " << seed;
            // it is used, too: a VF with that weight gets all its cap allows
            const double share = static_cast<double>(figures.vfs[1].service_ns) /
                                 static_cast<double>(figures.elapsed_ns);
            EXPECT_NEAR(share, 0.08, 0.008);
            EXPECT_EQ(figures.idle_with_work_ns, 0);
        }
    }
}

TEST(Caps, AVfAloneIsHeldToItsCapAndTheEngineIdles) {
    Simulation setup{.duration_ns = 2000 * kMs};
    setup.vfs.push_back({.policy = {.cap = {.rate_ppm = 250'000, .burst_ns = 10 * kMs}}});
    const Figures figures = simulate(setup);
    EXPECT_NEAR(static_cast<double>(figures.service_ns), 500e6, 11e6);
    EXPECT_EQ(figures.idle_with_work_ns, 0);
}

TEST(WorkConserving, TheEngineIdlesOnlyWhenNobodyHasWork) {
    Simulation setup{.duration_ns = 3000 * kMs, .seed = 3};
    for (int i = 0; i < 4; ++i)
        setup.vfs.push_back(
            {.policy = {.request_ns = 2 * kMs},
             .work = {.arrivals = Arrivals::Bursty, .work_ns = 3 * kMs, .period_ns = 40 * kMs}});
    const Figures figures = simulate(setup);
    EXPECT_GT(figures.idle_ns, 500 * kMs);
    EXPECT_EQ(figures.idle_with_work_ns, 0);
}

TEST(WorkConserving, AStrictVfKeepsItsSlotsAndOnlyThose) {
    Simulation setup{.duration_ns = 4000 * kMs};
    setup.device.switch_ns = 0;
    setup.vfs.push_back(
        {.policy = {.request_ns = 2 * kMs, .is_strict = true},
         .work = {.arrivals = Arrivals::Bursty, .work_ns = kMs, .period_ns = 100 * kMs}});
    setup.vfs.push_back({.policy = {.request_ns = 2 * kMs}});
    const Figures figures = simulate(setup);
    EXPECT_NEAR(static_cast<double>(figures.vfs[2].service_ns), 2000e6, 4e6);
}

/// Parties with reservations at random periods whose jobs come as often and are as long as they
/// may, beside backlogged VFs.
std::vector<Party> random_parties(Dice& dice, std::uint32_t reserved) {
    std::vector<Party> parties;
    for (std::uint32_t vf = 1; vf <= reserved; ++vf) {
        const double period_ms = static_cast<double>(dice.between(8, 100));
        parties.push_back({.vf = vf,
                           .contract = {.min_pct = 95.0 / reserved * (0.4 + dice.unit()),
                                        .latency_ms = period_ms,
                                        .max_gap_ms = 10'000}});
    }
    for (std::uint32_t vf = reserved + 1; vf <= reserved + 3; ++vf)
        parties.push_back({.vf = vf, .contract = {.max_gap_ms = 10'000}});
    return parties;
}

Simulation setup_of(const std::vector<Party>& parties, const Admission& admission, Dice& dice) {
    Simulation setup;
    for (std::size_t i = 0; i < parties.size(); ++i) {
        VfSetup vf{.policy = admission.policies[i]};
        const auto& reservation = vf.policy.reservation;
        if (reservation.budget_ns > 0)
            vf.work = {.arrivals = Arrivals::Periodic,
                       .work_ns = reservation.budget_ns,
                       .period_ns = reservation.period_ns,
                       .phase_ns = dice.between(0, reservation.period_ns),
                       .deadline_ns = reservation.period_ns};
        setup.vfs.push_back(vf);
    }
    return setup;
}

std::uint64_t missed(const Figures& figures) {
    std::uint64_t sum = 0;
    for (const VfFigures& vf : figures.vfs) sum += vf.missed;
    return sum;
}

std::uint64_t jobs(const Figures& figures) {
    std::uint64_t sum = 0;
    for (const VfFigures& vf : figures.vfs) sum += vf.jobs;
    return sum;
}

TEST(Reservations, WhatIsAdmittedMissesNoDeadline) {
    Dice dice(11);
    const std::uint64_t wanted = is_full() ? 1'000'000 : 20'000;
    std::uint64_t done = 0;
    int admitted = 0, refused = 0;
    while (done < wanted) {
        const auto parties = random_parties(dice, static_cast<std::uint32_t>(dice.between(1, 12)));
        const Engine engine{.switch_ns = 50'000};
        const auto admission = daemon::scheduler::admit(parties, engine);
        if (!admission) {
            ++refused;
            continue;
        }
        ++admitted;
        Simulation setup = setup_of(parties, *admission, dice);
        setup.device.switch_ns = engine.switch_ns;
        setup.duration_ns = 4000 * kMs;
        const Figures figures = simulate(setup);
        ASSERT_EQ(missed(figures), 0u) << "set " << admitted;
        done += jobs(figures);
    }
    EXPECT_GT(admitted, 10);
    EXPECT_GT(refused, 0);
}

/// The theoretical edge of earliest-deadline-first: all budgets and switches together fill the
/// engine. Admission may give away no more than 5 % of it for what cannot be pre-empted.
TEST(Reservations, AdmissionRefusesWithinFivePercentOfTheEdge) {
    for (const int reserved : {1, 2, 4, 8}) {
        const Engine engine{.switch_ns = 50'000, .reservable_ppm = 1'000'000};
        const double period_ms = 20;
        const auto fits = [&](double total_pct) {
            std::vector<Party> parties;
            for (int vf = 1; vf <= reserved; ++vf)
                parties.push_back({.vf = static_cast<std::uint32_t>(vf),
                                   .contract = {.min_pct = total_pct / reserved,
                                                .latency_ms = period_ms,
                                                .max_gap_ms = 10'000}});
            return daemon::scheduler::admit(parties, engine).has_value();
        };
        double low = 1, high = 100;
        while (high - low > 0.01) {
            const double middle = (low + high) / 2;
            (fits(middle) ? low : high) = middle;
        }
        const double switches_pct = 100 * reserved * 2 * 0.05 / period_ms;
        const double edge = 100 - switches_pct;
        EXPECT_LE(low, edge) << reserved;
        EXPECT_GE(low, edge * 0.95) << reserved;
        RecordProperty("edge_pct_" + std::to_string(reserved), std::to_string(low / edge * 100));
    }
}

constexpr std::int64_t kBurstNs = 500'000;
constexpr std::int64_t kMeasuredDecisionNs = 1000;  // by des_bench (docs/scheduling.md)

/// A quarter of the VFs has bursts of 0.5 ms on half of its fair share and reservations for two
/// bursts at a time; the others always have work.
Simulation latency_setup(std::uint32_t vfs) {
    Simulation setup{
        .name = "latency class", .duration_ns = (is_full() ? 60'000 : 6000) * kMs, .seed = 4};
    for (std::uint32_t vf = 1; vf <= vfs; ++vf) {
        VfSetup one{.policy = {.request_ns = 2 * kMs}};
        if (vf % 4 == 0) {
            one.policy.reservation = {
                .budget_ns = 2 * kBurstNs, .period_ns = std::int64_t{vfs} * kMs / 2, .ahead = 4};
            one.work = {.arrivals = Arrivals::Bursty,
                        .work_ns = kBurstNs,
                        .period_ns = std::int64_t{vfs} * kMs};
        }
        setup.vfs.push_back(one);
    }
    return setup;
}

std::int64_t p99_of_jobs(const Figures& figures) {
    std::vector<std::int64_t> all;
    for (const VfFigures& vf : figures.vfs)
        all.insert(all.end(), vf.response_ns.begin(), vf.response_ns.end());
    return quantile(all, 0.99);
}

std::int64_t longest_job(const Figures& figures) {
    std::int64_t longest = 0;
    for (const VfFigures& vf : figures.vfs)
        for (const std::int64_t ns : vf.response_ns) longest = std::max(longest, ns);
    return longest;
}

TEST(Latency, TheLatencyClassIsServedWithinTwoMillisecondsAtEveryCount) {
    for (const std::uint32_t vfs : {8u, 32u, 256u}) {
        Simulation setup = latency_setup(vfs);
        setup.device.decision_ns = kMeasuredDecisionNs;
        LibraryPolicy decided;
        const Figures figures = Simulator(setup, decided).run();
        const std::int64_t by_decision = p99_of_jobs(figures);
        const std::int64_t longest = longest_job(figures);
        GimRoundRobin gim;
        const std::int64_t gim_p99 = p99_of_jobs(Simulator(setup, gim).run());
        GvtCredit gvt;
        const std::int64_t gvt_p99 = p99_of_jobs(Simulator(setup, gvt).run());
        const std::string key = std::to_string(vfs);
        RecordProperty("by_decision_p99_us_" + key, std::to_string(by_decision / 1000));
        RecordProperty("by_decision_max_us_" + key, std::to_string(longest / 1000));
        RecordProperty("gim_p99_us_" + key, std::to_string(gim_p99 / 1000));
        RecordProperty("gvt_p99_us_" + key, std::to_string(gvt_p99 / 1000));
        EXPECT_LE(by_decision, 2 * kMs) << vfs;
        EXPECT_LE(longest, std::int64_t{vfs} * kMs / 2) << "the period of its reservations";
        EXPECT_GE(gim_p99, 5 * by_decision) << vfs;
        EXPECT_GE(gvt_p99, 5 * by_decision) << vfs;
    }
}

TEST(Gaps, NobodyWithWorkIsOffTheEngineForLongerThanAdmissionSaid) {
    Dice dice(5);
    int admitted = 0, refused = 0;
    double closest = 0;
    for (int round = 0; round < (is_full() ? 400 : 60); ++round) {
        std::vector<Party> parties;
        const auto vfs = static_cast<std::uint32_t>(dice.between(2, 16));
        for (std::uint32_t vf = 1; vf <= vfs; ++vf)
            parties.push_back(
                {.vf = vf,
                 .contract = {.weight = static_cast<std::uint32_t>(dice.between(20, 200)),
                              .min_pct = dice.chance(0.2) ? 3.0 : 0.0,
                              .max_gap_ms = static_cast<double>(dice.between(60, 300))}});
        const Engine engine{.switch_ns = 50'000};
        const auto admission = daemon::scheduler::admit(parties, engine);
        if (!admission) {
            ++refused;
            continue;
        }
        ++admitted;
        Simulation setup{.duration_ns = 3000 * kMs, .seed = static_cast<std::uint64_t>(round)};
        setup.device.switch_ns = engine.switch_ns;
        for (std::uint32_t vf = 1; vf <= vfs; ++vf) {
            VfSetup one{.policy = admission->policies[vf - 1]};
            if (dice.chance(0.4)) one.work = random_bursts(dice, vfs);
            setup.vfs.push_back(one);
        }
        const Figures figures = simulate(setup);
        for (std::uint32_t vf = 1; vf <= vfs; ++vf) {
            EXPECT_LE(figures.vfs[vf].longest_wait_ns, admission->worst_gap_ns[vf - 1]) << vf;
            EXPECT_LE(admission->worst_gap_ns[vf - 1],
                      static_cast<std::int64_t>(parties[vf - 1].contract.max_gap_ms * 1e6));
            closest = std::max(closest, static_cast<double>(figures.vfs[vf].longest_wait_ns) /
                                            static_cast<double>(admission->worst_gap_ns[vf - 1]));
        }
    }
    EXPECT_GT(admitted, 15);
    RecordProperty("closest_to_bound", std::to_string(closest));
    RecordProperty("refused", refused);
}

}  // namespace
}  // namespace vgpu::simulator
