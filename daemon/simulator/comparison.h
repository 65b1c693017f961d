// SPDX-License-Identifier: MIT
//
// Runs a scenario under the product (the shipped scheduler, product.h), or under each policy that
// the scenario names. Reports lags, compared with an ideal engine (gps_fluid.h), response times,
// waits and unused time.
#pragma once

#include "daemon/simulator/scenario.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vgpu::simulator {

/// The figures of one policy.
struct Row {
    std::string policy{};
    std::string refusal{};       ///< why the policy did not run; empty if it ran
    double worst_lag_ms = 0;     ///< maximum over VFs and time of |received − ideal service|
    double share_error_pct = 0;  ///< maximum of |received / due − 1| in %, over VFs that always
                                 ///< have work (share_error_of() in comparison.cpp)
    double p50_ms = 0, p99_ms = 0, max_ms = 0;  ///< response times of all completed jobs
    std::uint64_t jobs = 0;                     ///< completed jobs
    std::uint64_t missed = 0;                   ///< completed jobs that missed their deadline
    double longest_wait_ms = 0;     ///< maximum of VfFigures::longest_wait_ns over all VFs
    double useful_pct = 0;          ///< service of all VFs, in % of the simulated time
    double idle_with_work_pct = 0;  ///< Figures::idle_with_work_ns, in % of the simulated time
    std::uint64_t switches = 0;
    std::uint64_t resets = 0;  ///< number of resets of VFs
};

/// The result of simulate().
struct ProductOutcome {
    Figures figures{};
    double worst_lag_ms = 0;  ///< as Row::worst_lag_ms
    std::string recording{};  ///< bytes of the newest part of vgpud's recording (recording.h)
};
/// Runs the scenario under the product. The error is the text of run_product()'s error.
[[nodiscard]] tl::expected<ProductOutcome, std::string> simulate(const Scenario& scenario);

/// Runs the scenario under each of scenario.policies, and returns a row for each.
[[nodiscard]] std::vector<Row> compare(const Scenario& scenario);
/// The rows as a table for people. Shows the worst lag in ms and in multiples of
/// longest_slice_ms().
[[nodiscard]] std::string table_of(const Scenario& scenario, const std::vector<Row>& rows);
[[nodiscard]] nlohmann::ordered_json json_of(const std::vector<Row>& rows);
/// whole · ns / simulated time; 0 if no time passed. `whole`: 1 for a fraction, 100 for percent.
[[nodiscard]] double part_of(std::int64_t ns, const Figures& figures, double whole = 1);
/// The longest quantum of all VFs that are no gangs; 1 ns if all VFs are gangs.
[[nodiscard]] double longest_slice_ms(const Scenario& scenario);

}  // namespace vgpu::simulator
