// SPDX-License-Identifier: MIT
//
// Comparison: one scenario under each of its policies, and the figures that matter in a table:
// fairness against the ideal engine, response of VFs whose work comes in jobs, waits, waste.
#pragma once

#include "tests/bench/des/scenario.h"

#include <string>
#include <vector>

namespace vgpu::des {

struct Row {
    std::string policy{};
    double worst_lag_ms = 0;     ///< largest |received - ideal by weight| of any VF, at any instant
    double share_error_pct = 0;  ///< of the VF worst off, of those with work throughout
    double p50_ms = 0, p99_ms = 0, max_ms = 0;  ///< response of all jobs
    std::uint64_t jobs = 0;
    std::uint64_t missed = 0;    ///< deadlines
    double longest_wait_ms = 0;  ///< off the engine with work
    double useful_pct = 0;       ///< of the time that is service
    double idle_with_work_pct = 0;
    std::uint64_t switches = 0;
};

[[nodiscard]] std::vector<Row> compare(const Scenario& scenario);
/// Columns for a terminal; the worst lag also in units of the longest slice.
[[nodiscard]] std::string table_of(const Scenario& scenario, const std::vector<Row>& rows);
[[nodiscard]] std::string json_of(const Scenario& scenario, const std::vector<Row>& rows);

}  // namespace vgpu::des
