// SPDX-License-Identifier: MIT
//
// Cycle: the length of one cycle of a run table, each VF's part of it, and the number of slices.
// Has no order yet. Every slice is at least kMinQuantumUs long (the minimum of the PF core) and,
// where both are possible, no longer than the VF's request. Exact: whole microseconds.
#pragma once

#include "daemon/service/scheduler/planner.h"

#include <cstdint>
#include <span>
#include <vector>

namespace vgpu::daemon::scheduler {

inline constexpr std::int64_t kNsPerUs = 1000;

struct Part {
    Claim claim;
    std::uint64_t weight = 0;      ///< divided by the common divisor
    std::uint64_t request_us = 0;  ///< longest slice, after the gap limit
    std::uint64_t total_us = 0;
    std::uint64_t slices = 0;
    std::uint64_t next_slice = 0;

    [[nodiscard]] std::uint64_t slice_us(std::uint64_t index) const {
        return total_us / slices + (index < total_us % slices ? 1 : 0);
    }
    [[nodiscard]] bool has_slices() const { return next_slice < slices; }
    [[nodiscard]] std::int64_t next_ns() const {
        return static_cast<std::int64_t>(slice_us(next_slice)) * kNsPerUs;
    }
};

/// `claims` with reduced weights; totals and slices are not set yet.
[[nodiscard]] std::vector<Part> parts_of(std::span<const Claim> claims);

[[nodiscard]] std::uint64_t weight_sum(const std::vector<Part>& parts);

[[nodiscard]] std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b);

[[nodiscard]] std::uint64_t entries_for(const std::vector<Part>& parts, std::uint64_t cycle_us);

/// Length of a cycle in us. It is the number of hyperperiods (one microsecond per unit of weight)
/// that gives the smallest VF a whole request. Fewer hyperperiods, or part of one, if these exceed
/// `max_entries`. A few more if requests near the shortest slice would make totals impossible to
/// cut.
[[nodiscard]] std::uint64_t cycle_of(const std::vector<Part>& parts, std::uint64_t max_entries);

/// Cuts each total into slices; true if every total is exactly proportional to the weight.
bool set_totals(std::vector<Part>& parts, std::uint64_t cycle_us);

/// Adds each VF's lag, at most one quantum, to its total. False if a VF then has no slice.
bool add_corrections(std::vector<Part>& parts);

/// Repays lags of many slices by changing totals. A VF that owes gives up to 1/`divisor` of its
/// part, in shorter slices, so that no VF waits longer. The totals become the weights: if slices
/// were ordered by lag, those of the VF with lag > 0 would come in a row, and the lags would not
/// change.
void repay(std::vector<Part>& parts, std::uint64_t divisor);

}  // namespace vgpu::daemon::scheduler
