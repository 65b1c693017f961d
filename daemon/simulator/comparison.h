// SPDX-License-Identifier: MIT
//
// Comparison: one scenario under each of its policies, and the figures that matter in a table:
// fairness against the ideal engine, response of VFs whose work comes in jobs, waits, waste.
#pragma once

#include "daemon/simulator/scenario.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vgpu::simulator {

struct Row {
    std::string policy{};
    std::string refusal{};       ///< why there are no figures; empty: there are
    double worst_lag_ms = 0;     ///< largest |received - ideal by weight| of any VF, at any instant
    double share_error_pct = 0;  ///< of the VF worst off, of those with work throughout
    double p50_ms = 0, p99_ms = 0, max_ms = 0;  ///< response of all jobs
    std::uint64_t jobs = 0;
    std::uint64_t missed = 0;    ///< deadlines
    double longest_wait_ms = 0;  ///< off the engine with work
    double useful_pct = 0;       ///< of the time that is service
    double idle_with_work_pct = 0;
    std::uint64_t switches = 0;
    std::uint64_t resets = 0;  ///< of VFs
};

/// The result of a run of the product, and how far the worst VF was from its ideal share.
struct ProductOutcome {
    Figures figures{};
    double worst_lag_ms = 0;
    std::string recording{};  ///< the last part of it (recording.h)
};
/// The error is the text of the part that refuses the scenario.
[[nodiscard]] tl::expected<ProductOutcome, std::string> simulate(const Scenario& scenario);

[[nodiscard]] std::vector<Row> compare(const Scenario& scenario);
/// Columns for a terminal; the worst lag also in units of the longest slice.
[[nodiscard]] std::string table_of(const Scenario& scenario, const std::vector<Row>& rows);
[[nodiscard]] nlohmann::ordered_json json_of(const std::vector<Row>& rows);
[[nodiscard]] double longest_slice_ms(const Scenario& scenario);

}  // namespace vgpu::simulator
