// SPDX-License-Identifier: MIT
//
// One cycle of a run table before it has an order: how long it is, what each VF gets of it, and how
// many slices that is. Every slice is at least kMinQuantumUs long, which is the least the PF core
// takes, and no longer than the VF's request where any number of slices allows both.
//
// Pure and exact: whole microseconds. Called by the planner alone, which puts the slices in order.
#pragma once

#include "daemon/service/scheduler/planner.h"

#include <cstdint>
#include <span>
#include <vector>

namespace vgpu::daemon::scheduler {

inline constexpr std::int64_t kNsPerUs = 1000;

/// A VF's part of one cycle: its total and the slices it is cut into.
struct Part {
    Claim claim;
    std::uint64_t weight = 0;      ///< divided by the common divisor
    std::uint64_t request_us = 0;  ///< longest slice after the gap limit
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

/// The parts of `claims` with reduced weights; totals and slices are not set yet.
[[nodiscard]] std::vector<Part> parts_of(std::span<const Claim> claims);

[[nodiscard]] std::uint64_t weight_sum(const std::vector<Part>& parts);

[[nodiscard]] std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b);

/// Slices of all parts in a cycle of `cycle_us`.
[[nodiscard]] std::uint64_t entries_for(const std::vector<Part>& parts, std::uint64_t cycle_us);

/// Length of a cycle in us: as many whole hyperperiods (one microsecond per unit of weight) as give
/// the smallest VF a whole request; fewer, or part of one, if that makes more than `max_entries`.
/// Some more where requests are so close to the shortest slice that totals could not be cut else.
[[nodiscard]] std::uint64_t cycle_of(const std::vector<Part>& parts, std::uint64_t max_entries);

/// Cuts each part's total into slices; true if every total is exactly proportional to the weight.
bool set_totals(std::vector<Part>& parts, std::uint64_t cycle_us);

/// Adds what each VF is owed to its total; false if that leaves a VF without a slice.
/// Clamped to one quantum per table, so that a table that pays back is no burst of its own.
bool add_corrections(std::vector<Part>& parts);

/// Changes totals so that lags of many slices are paid back: a VF that owes gives up to 1/`divisor`
/// of its part of the cycle, in shorter slices, so that nobody waits longer. The totals are the
/// weights from then on: ordered by their lags, the slices of the VF that is owed would come in a
/// row and those of the others after them, and the lags would be the same at the end.
void repay(std::vector<Part>& parts, std::uint64_t divisor);

}  // namespace vgpu::daemon::scheduler
