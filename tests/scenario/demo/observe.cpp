// SPDX-License-Identifier: MIT
#include "tests/scenario/demo/observe.h"

#include <algorithm>
#include <fstream>

#include "tests/scenario/demo/checks.h"
#include "tests/scenario/demo/figures_table.h"

namespace vgpu::demo {
namespace {

using namespace test;

constexpr double kShareTolerance = 0.02;
constexpr milliseconds kLimit{120000};
constexpr std::int64_t kMs = 1'000'000;

}  // namespace

int observe(const ObserveOptions& options) {
    PfClient pf(options.uapi_socket);
    std::map<std::uint32_t, const SharedReport*> reports;
    for (const auto& [vf, weight] : options.weights) reports[vf] = nullptr;
    Measurement measurement(pf, options.weights, reports, options.quantum_us);
    measurement.begin();
    measurement.follow(
        "the quanta of the smallest VF",
        [&] {
            return std::ranges::all_of(options.weights, [&](const auto& each) {
                return measurement.quanta(each.first) >= options.quanta;
            });
        },
        kLimit);
    const auto now = monotonic_ns();
    const auto figures = measurement.finish();
    print_table(figures);
    std::ofstream(options.timeline)
        << to_svg(measurement.timeline("who ran when: two virtual machines", now, 400 * kMs, 0));
    fmt::print("  timeline: {}\n", options.timeline);

    Checks checks;
    double worst_error = 0;
    for (const auto& one : figures.vfs) worst_error = std::max(worst_error, one.share_error);
    checks.claim(worst_error <= kShareTolerance, "shares within 2 %",
                 fmt::format("worst {:.2f} %", 100 * worst_error));
    checks.claim(figures.events_lost == 0, "no event was lost", "");
    return checks.failed();
}

}  // namespace vgpu::demo
