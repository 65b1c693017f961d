// SPDX-License-Identifier: MIT
//
// Computes the length of one cycle of a run table, each VF's part of the cycle, and the number of
// slices of each part. planner.cpp orders the slices. Every slice is at least kMinQuantumUs long
// (the minimum of the PF core) and, if possible, no longer than Part::request_us. Lengths are whole
// microseconds, so that sums are exact.
#pragma once

#include "daemon/service/scheduler/planner.h"

#include <cstdint>
#include <span>
#include <vector>

namespace vgpu::daemon::scheduler {

inline constexpr std::int64_t kNsPerUs = 1000;

/// One VF's part of a cycle.
struct Part {
    Demand demand;
    std::uint64_t weight = 0;      ///< demand.weight / greatest common divisor of all weights
    std::uint64_t request_us = 0;  ///< longest slice; a gap limit may shorten it
    std::uint64_t total_us = 0;    ///< engine time in one cycle
    std::uint64_t slices = 0;      ///< number of slices in one cycle
    std::uint64_t next_slice = 0;  ///< index of the first slice that is not ordered yet

    /// Length of the slice `index`. The lengths differ by at most 1 us; the longer slices come
    /// first.
    [[nodiscard]] std::uint64_t slice_us(std::uint64_t index) const {
        return total_us / slices + (index < total_us % slices ? 1 : 0);
    }
    [[nodiscard]] bool has_slices() const { return next_slice < slices; }
    /// Length of the next slice.
    [[nodiscard]] std::int64_t next_ns() const {
        return static_cast<std::int64_t>(slice_us(next_slice)) * kNsPerUs;
    }
};

/// The parts of `demands`, with reduced weights; total_us and slices are not set yet.
[[nodiscard]] std::vector<Part> parts_of(std::span<const Demand> demands);

/// Σ Part::weight
[[nodiscard]] std::uint64_t weight_sum(const std::vector<Part>& parts);

/// a / b, rounded up.
[[nodiscard]] std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b);

/// Number of slices of all parts in a cycle of `cycle_us`.
[[nodiscard]] std::uint64_t entries_for(const std::vector<Part>& parts, std::uint64_t cycle_us);

/// Length of a cycle in us. A hyperperiod is one microsecond per unit of weight, so it gives each
/// VF whole microseconds. The cycle is the smallest number of hyperperiods that gives every VF at
/// least request_us. If this needs more than `max_entries` slices, the cycle has fewer
/// hyperperiods, or is a part of one hyperperiod. If a VF's total cannot be cut into slices of
/// kMinQuantumUs to request_us, the cycle has up to 99 more hyperperiods, if that helps.
[[nodiscard]] std::uint64_t cycle_of(const std::vector<Part>& parts, std::uint64_t max_entries);

/// Sets the total and the number of slices of each VF. Returns true if every total is exactly
/// proportional to the weight.
bool set_totals(std::vector<Part>& parts, std::uint64_t cycle_us);

/// Adds each VF's lag, limited to ± one quantum, to its total. If a total would become shorter than
/// the shortest slice, changes nothing and returns false.
bool add_corrections(std::vector<Part>& parts);

/// Corrects lags of any length: adds the same fraction of each lag to the VF's total. This is the
/// largest fraction, up to 1, with which no VF with lag < 0 loses more than 1/`divisor` of its
/// total. As far as kMinQuantumUs allows, the slices of such a VF become shorter rather than fewer,
/// because fewer slices would lengthen its gaps. Sets the lags to 0 and the weights to the totals,
/// because an order by the old lags would put the slices of a VF with lag > 0 in a row.
void correct_lags(std::vector<Part>& parts, std::uint64_t divisor);

}  // namespace vgpu::daemon::scheduler
