// SPDX-License-Identifier: MIT
//
// Gang slots on two software GPUs in real time, with no vgpud: their PF cores know nothing of each
// other, and the two VFs of a gang are in their engines at the same time. Judged by the time stamps
// of both devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kPeriod = 100 * kMs, kSlot = 30 * kMs, kPhase = 40 * kMs;
constexpr std::uint32_t kMember = 1, kNeighbour = 2;

struct Stay {
    std::uint64_t from = 0, to = 0;
};

/// Stays of the gang's VF by the period they begin in.
using Stays = std::map<std::uint64_t, Stay>;

/// One GPU with a VF of the gang and a neighbour, both with endless kernels.
class Gpu {
public:
    Gpu() : stack_({.vfs = 2, .aperture_mb = 32}), events_(stack_.pf().events()) {
        for (const std::uint32_t vf : {kMember, kNeighbour}) {
            stack_.provision(vf, 32);
            guests_.push_back(std::make_unique<Guest>(stack_, vf));
            progress_.push_back(start_endless(*guests_.back()));
            wait_progress(progress_.back(), milliseconds(60000));
        }
    }

    void set_gang() {
        vgpu_pf_contract gang{};
        gang.budget_ns = kSlot;
        gang.period_ns = kPeriod;
        gang.phase_us = kPhase / 1000;
        gang.flags = VGPU_PF_CONTRACT_GANG;
        stack_.pf().set_run_table({{kMember, 6000}, {kNeighbour, 6000}}, 0, {{kMember, gang}});
        events_.wait([](const vgpu_pf_event& event) { return event.type == VGPU_PF_EVENT_TABLE; },
                     milliseconds(60000));
        (void)events_.take();
    }

    /// Adds the runs of the gang's VF until now; times are of CLOCK_MONOTONIC.
    void read(Stays& stays) {
        for (const vgpu_pf_event& event : events_.take()) {
            if (event.type != VGPU_PF_EVENT_RUN || event.vf != kMember) continue;
            const std::uint64_t from = event.time_ns - event.duration_ns;
            Stay& stay = stays[(from - kPhase) / kPeriod];
            stay.from = stay.from == 0 ? from : std::min(stay.from, from);
            stay.to = std::max(stay.to, event.time_ns);
        }
    }
    void wait(const Deadline& limit) { events_.wait_any(limit); }
    [[nodiscard]] std::uint64_t lost() const { return events_.lost(); }

private:
    GpuStack stack_;
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<Buffer> progress_;
    EventReader events_;
};

TEST(Gang, VfsOnTwoGpusAreInTheirEnginesTogether) {
    Gpu first, second;
    first.set_gang();
    second.set_gang();
    Stays a, b;
    const Deadline limit(milliseconds(60'000));
    constexpr std::size_t kPeriods = 40;
    while ((a.size() < kPeriods + 4 || b.size() < kPeriods + 4) && !limit.passed()) {
        first.wait(limit);
        first.read(a);
        second.read(b);
    }
    ASSERT_EQ(first.lost() + second.lost(), 0u);
    std::uint64_t together = 0, slots = 0;
    std::vector<std::uint64_t> apart;
    for (const auto& [period, x] : a) {
        const auto found = b.find(period);
        if (found == b.end() || period == a.begin()->first || period == b.begin()->first) continue;
        const Stay y = found->second;
        const std::uint64_t from = std::max(x.from, y.from), to = std::min(x.to, y.to);
        together += to > from ? to - from : 0;
        slots += kSlot;
        apart.push_back(x.from > y.from ? x.from - y.from : y.from - x.from);
        for (const Stay& stay : {x, y}) {
            const std::uint64_t into = (stay.from - kPhase) % kPeriod;
            EXPECT_LE(into, kSlot) << "period " << period << " begins outside of its slot";
        }
    }
    ASSERT_GE(apart.size(), kPeriods / 2);
    std::sort(apart.begin(), apart.end());
    RecordProperty("median_apart_us", static_cast<int>(apart[apart.size() / 2] / 1000));
    EXPECT_LE(apart[apart.size() / 2], 3 * kMs);
    EXPECT_GE(static_cast<double>(together), 0.8 * static_cast<double>(slots));
}

}  // namespace
}  // namespace vgpu::test
