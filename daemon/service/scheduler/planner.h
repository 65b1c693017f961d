// SPDX-License-Identifier: MIT
//
// Planner: makes a run table from weights. The PF core repeats the table of at most 1024 (VF,
// quantum) entries without end, so the table must be fair by itself: one cycle gives every VF its
// part of the cycle, exactly if the weights allow it (Plan::is_exact). A table starts from the
// current lags and ends at the same lags, so lags stay bounded however often tables are replaced.
// The order is EEVDF (earliest eligible virtual deadline first; |lag| ≤ one quantum), or
// an order with smaller lags if the weights allow one. With weights 1:1:2:4, lags stay within half
// a quantum. If the current lags allow no such order, the table corrects them (Plan::corrects), and
// is replaced after one cycle. It corrects at most one quantum of each lag, or more if a lag
// exceeds one quantum. The reserve section of a table lists the VFs that may preempt other VFs when
// they wake (reserve_of()).
//
// Pure: no clock, no I/O. Computes service and lags exactly (integers, 128 bits where products need
// them), and compares gaps with their limits in floating point.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vgpu::daemon::scheduler {

inline constexpr std::uint32_t kMinWeight = 1;
inline constexpr std::uint32_t kMaxWeight = 10'000;
inline constexpr std::uint32_t kDefaultWeight = 100;
/// The shortest slice worth its world switch, and the minimum of the uapi.
inline constexpr std::uint32_t kMinQuantumUs = 100;
/// The maximum of the uapi.
inline constexpr std::uint32_t kMaxQuantumUs = 1'000'000;
inline constexpr std::uint32_t kDefaultQuantumUs = 6'000;
inline constexpr std::uint32_t kDefaultMaxGapMs = 60;

/// One VF's request to the planner.
struct Demand {
    std::uint32_t vf = 0;
    std::uint32_t weight = kDefaultWeight;
    std::uint32_t quantum_us = kDefaultQuantumUs;  ///< longest slice
    std::int64_t lag_ns = 0;   ///< ideal − received; Σ over all demands ≈ 0
    bool is_asleep = false;    ///< true: no recent work, so the slices are spread evenly
    bool may_wake = false;     ///< true: no work now, so reserve_of() lists the VF
    std::int64_t debt_ns = 0;  ///< max(0, −lag); reserve_of() deducts it from the VF's advance
    std::uint32_t max_gap_us = 0;  ///< longest time off the engine; 0: Limits::max_gap_us
    std::string_view name{};       ///< for messages; empty: the number is used
};

/// Value of max_gap_us for a VF without a gap limit.
inline constexpr std::uint32_t kAnyGap = UINT32_MAX;

/// Unless a member says otherwise, times are in us of the table's own time, which passes only while
/// entries of the table run.
struct Limits {
    std::uint32_t max_gap_us = kDefaultMaxGapMs * 1000;  ///< longest time off the engine
    std::uint32_t max_entries = 1024;
    /// Longest reserved time between two slices of the table. Used only in messages, which give
    /// real time instead of the table's own time.
    std::uint32_t extra_us = 0;
    /// Reserved part of all time, 0..1. Used only in messages, as extra_us is.
    double taken = 0;
    /// Time of the world switch and the overrun of each slice. plan() shortens slices for this cost
    /// if that helps, and never refuses a plan because of this cost.
    std::uint32_t overhead_us = 0;
};

struct Entry {
    std::uint32_t vf = 0;
    std::uint32_t quantum_us = 0;

    bool operator==(const Entry&) const = default;
};

struct Plan {
    std::vector<Entry> entries;
    std::uint32_t quantum_us = 0;  ///< largest entry: the unit of lag
    std::uint64_t cycle_us = 0;
    std::uint64_t worst_gap_us = 0;  ///< longest time between successive entries of a VF
    std::int64_t worst_lag_ns = 0;   ///< largest |lag| while the table runs from the given lags
    bool is_exact = true;            ///< true if one cycle gives each VF exactly its part by weight
    bool corrects = false;  ///< true if the plan corrects lags; it is replaced after one cycle

    bool operator==(const Plan&) const = default;
};

/// The table for at most 16 demands of distinct VFs. NoSchedule, with numbers that would fit, if
/// the gap limit cannot be kept. One demand gives a single entry under any limits. Computes some
/// dozens of orders, some hundreds if gaps are tight, each in O(entries · VFs).
Result<Plan> plan(std::span<const Demand> demands, Limits limits);
/// Success if plan() makes a table. Computes fewer orders than plan(), often one.
Result<> check(std::span<const Demand> demands, Limits limits);

/// The VFs that may preempt a running slice when they wake while `plan` is in force, each with its
/// advance, the time for which it may do so. The advance of a VF is its longest slice less its
/// debt. All advances are reduced so that no other VF falls behind by more than half a slice, even
/// if all VFs wake at once. Advances that are too short to run are left out.
std::vector<Entry> reserve_of(const Plan& plan, std::span<const Demand> demands);

/// True if `entries` give each demand's VF its exact part and contain no other VF. vgpud keeps a
/// table of another vgpud only if this is true, because lags drift while an inexact table is
/// repeated.
bool is_fair_table(std::span<const Entry> entries, std::span<const Demand> demands);

}  // namespace vgpu::daemon::scheduler
