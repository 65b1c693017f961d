// SPDX-License-Identifier: MIT
#include "daemon/simulator/comparison.h"

#include "daemon/simulator/gps_fluid.h"
#include "daemon/simulator/milliseconds.h"
#include "daemon/simulator/product.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace vgpu::simulator {

namespace {

/// The share error in percent: the maximum of |received / due − 1| over the VFs that have work from
/// the start on and get engine time only by weight, where due = weight · Σ received / Σ weight. 0
/// if the setup has changes, or if none of these VFs received service.
double share_error_of(const Simulation& setup, const Figures& figures) {
    double weights = 0, received = 0;
    const auto counts = [&](std::size_t i) {
        return setup.vfs[i].work.arrivals == Arrivals::Backlogged &&
               setup.vfs[i].policy.reservation.budget_ns == 0 && !setup.vfs[i].policy.cap.is_on() &&
               !setup.vfs[i].joins_later;
    };
    for (std::size_t i = 0; i < setup.vfs.size(); ++i) {
        if (!counts(i)) continue;
        weights += setup.vfs[i].policy.weight;
        received += static_cast<double>(figures.vfs[i + 1].service_ns);
    }
    if (received == 0 || !setup.changes.empty()) return 0;
    double worst = 0;
    for (std::size_t i = 0; i < setup.vfs.size(); ++i) {
        if (!counts(i)) continue;
        const double due = received * setup.vfs[i].policy.weight / weights;
        worst = std::max(worst,
                         std::fabs(static_cast<double>(figures.vfs[i + 1].service_ns) / due - 1));
    }
    return 100 * worst;
}

/// A GpsFluid that also keeps the recording of the run.
class RecordingFluid final : public GpsFluid {
public:
    void recorded(const std::vector<std::uint8_t>& bytes) override {
        recording.assign(bytes.begin(), bytes.end());
    }

    std::string recording;
};

/// Why the policy cannot simulate the scenario; empty if it can.
std::string_view refusal_of(const Simulation& setup, const Policy& policy) {
    const auto has = [&setup](auto is_one) {
        return std::any_of(setup.vfs.begin(), setup.vfs.end(), is_one);
    };
    const auto hangs = [](const VfFault& fault) { return fault.kind == BadKernel::Hang; };
    if (has([](const VfSetup& vf) { return vf.policy.is_gang; })) return "it has no gang slots";
    if (has([&](const VfSetup& vf) {
            return std::any_of(vf.work.faults.begin(), vf.work.faults.end(), hangs);
        }))
        return policy.hang_refusal();
    return {};
}

tl::expected<Figures, std::string> run(const Scenario& scenario, const std::string& name,
                                       Observer& observer) {
    if (name == kProductName) {
        auto figures = run_product(scenario.setup, &observer);
        if (!figures) return tl::make_unexpected(figures.error().cause);
        return std::move(*figures);
    }
    const std::unique_ptr<Policy> policy = policy_named(name);
    if (!policy) return tl::make_unexpected(fmt::format("no policy has the name '{}'", name));
    const std::string_view refusal = refusal_of(scenario.setup, *policy);
    if (!refusal.empty()) return tl::make_unexpected(std::string(refusal));
    return Simulator(scenario.setup, *policy, &observer).run();
}

Row row_of(const Scenario& scenario, const std::string& name) {
    Row row{.policy = name};
    GpsFluid oracle;
    const auto outcome = run(scenario, name, oracle);
    if (!outcome) {
        row.refusal = outcome.error();
        return row;
    }
    const Figures& figures = *outcome;
    std::vector<std::int64_t> responses;
    for (const VfFigures& vf : figures.vfs) {
        responses.insert(responses.end(), vf.response_ns.begin(), vf.response_ns.end());
        row.missed += vf.missed;
        row.resets += vf.resets;
        row.longest_wait_ms = std::max(row.longest_wait_ms, ms_of(vf.longest_wait_ns));
    }
    row.jobs = responses.size();
    row.p50_ms = ms_of(quantile(responses, 0.5));
    row.p99_ms = ms_of(quantile(responses, 0.99));
    row.max_ms = ms_of(quantile(responses, 1));
    row.worst_lag_ms = static_cast<double>(oracle.worst_lag_ns()) / 1e6;
    row.share_error_pct = share_error_of(scenario.setup, figures);
    row.useful_pct = part_of(figures.service_ns, figures, 100);
    row.idle_with_work_pct = part_of(figures.idle_with_work_ns, figures, 100);
    row.switches = figures.switches;
    return row;
}

}  // namespace

double part_of(std::int64_t ns, const Figures& figures, double whole) {
    if (figures.elapsed_ns == 0) return 0;
    return whole * static_cast<double>(ns) / static_cast<double>(figures.elapsed_ns);
}

double longest_slice_ms(const Scenario& scenario) {
    std::int64_t longest_ns = 1;
    for (const VfSetup& vf : scenario.setup.vfs)
        if (!vf.policy.is_gang) longest_ns = std::max(longest_ns, vf.policy.request_ns);
    return ms_of(longest_ns);
}

tl::expected<ProductOutcome, std::string> simulate(const Scenario& scenario) {
    RecordingFluid oracle;
    auto figures = run(scenario, kProductName, oracle);
    if (!figures) return tl::make_unexpected(figures.error());
    return ProductOutcome{.figures = std::move(*figures),
                          .worst_lag_ms = static_cast<double>(oracle.worst_lag_ns()) / 1e6,
                          .recording = std::move(oracle.recording)};
}

std::vector<Row> compare(const Scenario& scenario) {
    std::vector<Row> rows;
    for (const std::string& name : scenario.policies) rows.push_back(row_of(scenario, name));
    return rows;
}

std::string table_of(const Scenario& scenario, const std::vector<Row>& rows) {
    const double slice_ms = longest_slice_ms(scenario);
    std::string text =
        fmt::format("{:<13} {:>8} {:>8} {:>7} {:>8} {:>8} {:>7} {:>6} {:>6}\n", "policy", "lag ms",
                    "slices", "share", "p50 ms", "p99 ms", "wait ms", "useful", "missed");
    for (const Row& row : rows) {
        if (!row.refusal.empty()) {
            text += fmt::format("{:<13} refused: {}\n", row.policy, row.refusal);
            continue;
        }
        text += fmt::format(
            "{:<13} {:>8.2f} {:>8.2f} {:>6.1f}% {:>8.2f} {:>8.2f} {:>7.1f} {:>5.1f}% {:>6}\n",
            row.policy, row.worst_lag_ms, row.worst_lag_ms / slice_ms, row.share_error_pct,
            row.p50_ms, row.p99_ms, row.longest_wait_ms, row.useful_pct, row.missed);
    }
    return text;
}

nlohmann::ordered_json json_of(const std::vector<Row>& rows) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
        if (!row.refusal.empty()) {
            list.push_back({{"policy", row.policy}, {"refusal", row.refusal}});
            continue;
        }
        list.push_back({{"policy", row.policy},
                        {"worst_lag_ms", row.worst_lag_ms},
                        {"share_error_pct", row.share_error_pct},
                        {"p50_ms", row.p50_ms},
                        {"p99_ms", row.p99_ms},
                        {"max_ms", row.max_ms},
                        {"jobs", row.jobs},
                        {"missed", row.missed},
                        {"longest_wait_ms", row.longest_wait_ms},
                        {"useful_pct", row.useful_pct},
                        {"idle_with_work_pct", row.idle_with_work_pct},
                        {"switches", row.switches},
                        {"resets", row.resets}});
    }
    return list;
}

}  // namespace vgpu::simulator
