// SPDX-License-Identifier: MIT
//
// Runs a scenario with the product, or under each policy that the scenario names. Reports lags
// compared with an ideal engine, responses, waits and unused time.
#pragma once

#include "daemon/simulator/scenario.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vgpu::simulator {

/// The figures of one policy.
struct Row {
    std::string policy{};
    std::string refusal{};                      ///< why there are no figures; empty if there are
    double worst_lag_ms = 0;                    ///< max |received − ideal by weight| of any VF
    double share_error_pct = 0;                 ///< of the worst VF that always has work
    double p50_ms = 0, p99_ms = 0, max_ms = 0;  ///< response of all jobs
    std::uint64_t jobs = 0;
    std::uint64_t missed = 0;       ///< jobs that missed their deadline
    double longest_wait_ms = 0;     ///< longest time for which a VF with work was off the engine
    double useful_pct = 0;          ///< part of the time that is service
    double idle_with_work_pct = 0;  ///< part of the time that is Figures::idle_with_work_ns
    std::uint64_t switches = 0;
    std::uint64_t resets = 0;  ///< number of resets of VFs
};

struct ProductOutcome {
    Figures figures{};
    double worst_lag_ms = 0;  ///< as Row::worst_lag_ms
    std::string recording{};  ///< the last part of vgpud's recording (recording.h)
};
/// Simulates the product (product.h). The error is the text of run_product()'s error.
[[nodiscard]] tl::expected<ProductOutcome, std::string> simulate(const Scenario& scenario);

/// Runs the scenario under each of scenario.policies, and returns a row for each.
[[nodiscard]] std::vector<Row> compare(const Scenario& scenario);
/// A table for people. Shows the worst lag also in units of the longest slice.
[[nodiscard]] std::string table_of(const Scenario& scenario, const std::vector<Row>& rows);
[[nodiscard]] nlohmann::ordered_json json_of(const std::vector<Row>& rows);
/// `ns` as a part of the simulated time, where all of this time counts as `whole`; 0 if no time
/// passed.
[[nodiscard]] double part_of(std::int64_t ns, const Figures& figures, double whole = 1);
[[nodiscard]] double longest_slice_ms(const Scenario& scenario);

}  // namespace vgpu::simulator
