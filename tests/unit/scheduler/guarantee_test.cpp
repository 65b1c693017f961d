// SPDX-License-Identifier: MIT
//
// What admission promises of reservations: those that it lets in miss no deadline under what is
// shipped, and it refuses little that would fit.
#include "daemon/service/scheduler/contract.h"
#include "tests/unit/scheduler/product_runs.h"

#include <algorithm>
#include <cmath>

namespace vgpu::simulator {
namespace {

using ::testing::HasSubstr;

/// Up to 12 VFs with reservations at random periods, beside three that always have work. A job
/// comes in each period and takes 99 % of the budget: the core adds a rest of less than 10 us to
/// the next budget, with its later deadline. Budgets are in whole microseconds, as the device
/// counts a slice.
std::string random_vfs(Rng& rng, std::int64_t reserved) {
    constexpr double kUsPerMs = 1000;
    std::string list = R"({"count": 3, "max_gap_ms": 10000})";
    for (std::int64_t i = 0; i < reserved; ++i) {
        const std::int64_t period_ms = rng.between(8, 100);
        const double part =
            std::min(1.0, 0.95 / static_cast<double>(reserved) * (0.4 + rng.unit()));
        const double budget_ms =
            std::round(part * static_cast<double>(period_ms) * kUsPerMs) / kUsPerMs;
        list += fmt::format(R"(, {{"min_pct": {}, "latency_ms": {}, "max_gap_ms": 10000,
            "work": {{"arrivals": "periodic", "work_ms": {}, "period_ms": {}, "deadline_ms": {},
                      "phase_ms": {}}}}})",
                            budget_ms / static_cast<double>(period_ms) * 100, period_ms,
                            budget_ms * 0.99, period_ms, period_ms, rng.between(0, period_ms));
    }
    return list;
}

TEST(Reservations, WhatIsAdmittedMissesNoDeadline) {
    Rng rng(11);
    const int wanted = is_full() ? 400 : 5;
    int admitted = 0, refused = 0;
    while (admitted < wanted) {
        const std::string vfs = random_vfs(rng, rng.between(1, 12));
        const auto parsed = parse_scenario(fmt::format(
            R"({{"duration_ms": 3000, "device": {{"decision_us": 0}}, "vfs": [{}]}})", vfs));
        if (!parsed) {
            ASSERT_THAT(parsed.error(), HasSubstr("not admitted"));
            ++refused;
            continue;
        }
        ++admitted;
        const Figures figures = figures_of(parsed->setup);
        for (std::size_t vf = 4; vf < figures.vfs.size(); ++vf) {
            EXPECT_GE(figures.vfs[vf].jobs, 28u) << vfs;
            EXPECT_EQ(figures.vfs[vf].missed, 0u) << "VF " << vf << " of " << vfs;
        }
    }
    EXPECT_GT(refused, 0);
}

/// The theoretical edge of earliest-deadline-first: all budgets and switches together fill the
/// engine. Admission may give away no more than 5 % of it for what cannot be preempted.
TEST(Reservations, AdmissionRefusesWithinFivePercentOfTheEdge) {
    using daemon::scheduler::ContractParty;
    for (const int reserved : {1, 2, 4, 8}) {
        const daemon::scheduler::Engine engine{.switch_ns = 50'000, .reservable_ppm = 1'000'000};
        const double period_ms = 20;
        const auto fits = [&](double total_pct) {
            std::vector<ContractParty> parties;
            for (int vf = 1; vf <= reserved; ++vf)
                parties.push_back({.vf = static_cast<std::uint32_t>(vf),
                                   .contract = {.min_pct = total_pct / reserved,
                                                .latency_ms = period_ms,
                                                .max_gap_ms = 10'000}});
            return daemon::scheduler::admit_for_table(parties, engine).has_value();
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

}  // namespace
}  // namespace vgpu::simulator
