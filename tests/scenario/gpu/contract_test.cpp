// SPDX-License-Identifier: MIT
//
// Service contracts on softgpu in real time, with no vgpud: eight VFs with endless kernels, one
// with a reservation, one with a cap, six with weights only. The tests judge by the device's own
// time stamps in the RUN events, so that other processes change only the number of runs.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>

#include "tests/scenario/gpu/guest.h"
#include "tests/support/stolen_time.h"

namespace vgpu::test {
namespace {

constexpr std::uint32_t kVfs = 8;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kReserved = 1, kCapped = 2;
/// Weights are entries of 2 ms in the table.
constexpr std::array<std::uint32_t, kVfs + 1> kWeights{0, 1, 2, 1, 1, 2, 2, 4, 4};

std::vector<vgpu_pf_run_entry> entries() {
    std::vector<vgpu_pf_run_entry> table;
    for (std::uint32_t pass = 0; pass < 4; ++pass)
        for (std::uint32_t vf = 1; vf <= kVfs; ++vf)
            if (pass < kWeights[vf]) table.push_back({vf, 2000});
    return table;
}

struct Totals {
    std::array<std::uint64_t, kVfs + 1> service{}, reserved{};
    std::uint64_t first_ns = 0, last_ns = 0;
    std::uint64_t overrun_max = 0, overrun_sum = 0;  ///< overruns of the VF with the cap
    std::array<double, kVfs + 1> max_beyond{};  ///< service beyond a cap's rate, over every window
    std::array<double, kVfs + 1> min{}, sum{};

    void add(const vgpu_pf_event& run, double rate) {
        const double begin = static_cast<double>(run.time_ns - run.duration_ns);
        if (first_ns == 0) first_ns = run.time_ns - run.duration_ns;
        last_ns = run.time_ns;
        if (service[run.vf] == 0) min[run.vf] = -rate * begin;
        min[run.vf] = std::min(min[run.vf], sum[run.vf] - rate * begin);
        service[run.vf] += run.duration_ns;
        reserved[run.vf] += run.reserved_ns;
        sum[run.vf] += static_cast<double>(run.duration_ns);
        max_beyond[run.vf] =
            std::max(max_beyond[run.vf],
                     sum[run.vf] - rate * static_cast<double>(run.time_ns) - min[run.vf]);
    }
    void add_overrun(std::uint64_t overrun) {
        overrun_max = std::max(overrun_max, overrun);
        overrun_sum += overrun;
    }
    [[nodiscard]] double elapsed_ns() const { return static_cast<double>(last_ns - first_ns); }
    /// The VF's service of what reservation and cap leave.
    [[nodiscard]] double shared(std::uint32_t vf) const {
        return vf == kCapped ? 0 : static_cast<double>(service[vf] - reserved[vf]);
    }
};

class Contracts : public ::testing::Test {
protected:
    Contracts() {
        for (std::uint32_t vf = 1; vf <= kVfs; ++vf) {
            stack_.provision(vf, 32);
            guests_.push_back(std::make_unique<Guest>(stack_, vf));
            progress_.push_back(start_endless(*guests_.back()));
            wait_progress(progress_.back(), milliseconds(60000));
        }
        events_.emplace(stack_.pf().events());
        vgpu_pf_contract reservation{}, cap{};
        reservation.budget_ns = 4 * kMs;
        reservation.period_ns = 20 * kMs;
        cap.rate_ppm = 50'000;
        cap.burst_ns = kBurst;
        stack_.pf().set_run_table(entries(), 0, {{kReserved, reservation}, {kCapped, cap}});
        events_->wait([](const vgpu_pf_event& event) { return event.type == VGPU_PF_EVENT_TABLE; },
                      milliseconds(60000));
    }

    /// Measures what the VFs get for 6 s from now on.
    Totals measure() {
        (void)events_->take();
        Totals totals;
        const Deadline limit(milliseconds(120'000));
        while (totals.elapsed_ns() < kMeasured && !limit.passed()) {
            events_->wait_any(limit);
            for (const vgpu_pf_event& event : events_->take()) {
                if (event.type == VGPU_PF_EVENT_RUN)
                    totals.add(event, event.vf == kCapped ? kRate : 0);
                if (event.type == VGPU_PF_EVENT_OVERRUN && event.vf == kCapped)
                    totals.add_overrun(event.duration_ns);
            }
        }
        return totals;
    }

    static constexpr double kRate = 0.05, kReservedPart = 0.2;
    static constexpr std::uint64_t kBurst = 4 * kMs;
    static constexpr double kMeasured = 6000.0 * kMs;

    // One thread, because the levels run a test on each CPU and this one measures time.
    GpuStack stack_{{.vfs = kVfs, .aperture_mb = 32, .threads = 1}};
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<Buffer> progress_;
    std::optional<EventReader> events_;
};

/// A quantum in which the machine stands still is too long, so overruns and shares then show the
/// machine and not the scheduler.
TEST_F(Contracts, EightMixedVfsGetWhatTheyWerePromisedWithoutVgpud) {
    constexpr int kAttempts = 3;
    Totals totals;
    std::optional<StolenTime> stolen;
    for (int attempt = 0; attempt < kAttempts && (!stolen || stolen->part() > kMostStolen);
         ++attempt) {
        stolen.emplace();
        totals = measure();
        ASSERT_GE(totals.elapsed_ns(), kMeasured);
        EXPECT_LE(static_cast<double>(totals.service[kCapped]),
                  kRate * totals.elapsed_ns() + static_cast<double>(kBurst + totals.overrun_sum) +
                      300'000.0)
            << "not even on a machine that stands still now and then";
    }
    ASSERT_EQ(events_->lost(), 0u);
    if (stolen->part() > kMostStolen) GTEST_SKIP() << stolen->describe();

    EXPECT_LE(totals.max_beyond[kCapped],
              static_cast<double>(kBurst + totals.overrun_max) + 300'000.0)
        << "200 us of an overrun are not worth an event";
    EXPECT_NEAR(static_cast<double>(totals.service[kCapped]) / totals.elapsed_ns(), kRate, 0.005);
    EXPECT_NEAR(static_cast<double>(totals.reserved[kReserved]) / totals.elapsed_ns(),
                kReservedPart, 0.01);
    double weights = 0, shared = 0;
    for (std::uint32_t vf = 1; vf <= kVfs; ++vf) {
        weights += vf == kCapped ? 0 : kWeights[vf];
        shared += totals.shared(vf);
    }
    for (std::uint32_t vf = 1; vf <= kVfs; ++vf) {
        if (vf == kCapped) continue;
        EXPECT_NEAR(totals.shared(vf) / shared, kWeights[vf] / weights, 0.01)
            << "VF" << vf << ", of what reservation and cap leave";
    }
}

}  // namespace
}  // namespace vgpu::test
