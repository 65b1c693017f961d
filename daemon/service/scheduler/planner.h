// SPDX-License-Identifier: MIT
//
// Planner: makes a run table from the weights and lags (ideal − received service) of VFs. A table
// is a list of at most 1024 entries (VF, quantum), which the PF core repeats until it gets another
// table. So a table must be fair by itself: one cycle gives each VF its part by weight, exactly if
// the weights allow that (Plan::is_exact).
//
// An exact table starts from the current lags and ends its cycle with the same lags, so lags stay
// bounded however often tables are replaced. The order of the slices is EEVDF (earliest eligible
// virtual deadline first; |lag| ≤ one quantum) or, if the weights allow one, an order with smaller
// lags. For weights 1:1:2:4, lags stay within half a quantum.
//
// If no order keeps both the lags small and the gaps (times off the engine) within their limits,
// the table corrects lags (Plan::corrects). It is then not fair by itself, so vgpud replaces it
// after one cycle. Such a table corrects up to one quantum of each lag. If a lag exceeds one
// quantum, or if the correction makes a gap too long, the table corrects a fraction of each lag
// instead. If that also makes a gap too long, the table ignores the lags.
//
// The reserve section of a table lists the VFs that may preempt other VFs when they wake, and the
// length of each such early run (reserve_of()).
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
/// The minimum of the uapi, and the shortest slice that is worth its world switch.
inline constexpr std::uint32_t kMinQuantumUs = 100;
/// The maximum of the uapi.
inline constexpr std::uint32_t kMaxQuantumUs = 1'000'000;
inline constexpr std::uint32_t kDefaultQuantumUs = 6'000;
inline constexpr std::uint32_t kDefaultMaxGapMs = 60;

/// One VF's request to the planner.
struct Demand {
    std::uint32_t vf = 0;
    std::uint32_t weight = kDefaultWeight;         ///< kMinWeight to kMaxWeight
    std::uint32_t quantum_us = kDefaultQuantumUs;  ///< longest slice
    std::int64_t lag_ns = 0;  ///< ideal − received service; Σ over all demands ≈ 0
    bool is_asleep = false;   ///< true: no work for some time, or a gang; slices are spread evenly
    bool may_wake = false;    ///< true: no work now, so reserve_of() may list the VF
    std::int64_t debt_ns = 0;  ///< max(0, −lag), which reserve_of() deducts from the VF's early run
    std::uint32_t max_gap_us = 0;  ///< gap limit, as in Limits; 0: Limits::max_gap_us
    std::string_view name{};       ///< for messages; empty: the number is used
};

/// Value of Demand::max_gap_us for a VF without a gap limit.
inline constexpr std::uint32_t kAnyGap = UINT32_MAX;

/// Limits of a table. Gaps are in the table's own time, which passes only while entries of the
/// table run, not during reserved service.
struct Limits {
    std::uint32_t max_gap_us = kDefaultMaxGapMs * 1000;  ///< longest time off the engine
    std::uint32_t max_entries = 1024;
    /// Real time of the reserved service that may run between two slices of the table. Used only
    /// for messages, which give real time.
    std::uint32_t extra_us = 0;
    /// Reserved part of real time, 0..1. Used only for messages.
    double taken = 0;
    /// Time of the world switch and the overrun of each slice. plan() shortens slices for this cost
    /// if that helps, and never refuses a plan because of this cost.
    std::uint32_t overhead_us = 0;
};

/// A slice in a run table, or an early run in its reserve section.
struct Entry {
    std::uint32_t vf = 0;
    std::uint32_t quantum_us = 0;

    bool operator==(const Entry&) const = default;
};

/// The entries of a run table, and their properties. Times are in the table's own time.
struct Plan {
    std::vector<Entry> entries;
    std::uint32_t quantum_us = 0;    ///< longest entry; also the unit of lags "in quanta"
    std::uint64_t cycle_us = 0;      ///< sum of all entries
    std::uint64_t worst_gap_us = 0;  ///< longest time between successive entries of any VF
    std::int64_t worst_lag_ns = 0;   ///< bound of |lag| in the first cycle, for VFs not asleep
    bool is_exact = true;            ///< true if one cycle gives each VF exactly its part by weight
    bool corrects = false;  ///< true if the table corrects lags; vgpud replaces it after one cycle

    bool operator==(const Plan&) const = default;
};

/// Plans a table for at most 16 demands of distinct VFs. Fails with NoSchedule if the gap limits
/// cannot be kept; the error names numbers that would fit, if a single weight is too small. One
/// demand gives a single entry under any limits; no demand gives an empty plan. Computes some
/// dozens of orders, some hundreds if gaps are tight, each in O(entries · VFs).
Result<Plan> plan(std::span<const Demand> demands, Limits limits);
/// Succeeds if and only if plan() succeeds. Computes fewer orders than plan(), often one.
Result<> check(std::span<const Demand> demands, Limits limits);

/// The reserve section of `plan`: the VFs with Demand::may_wake, which may preempt a running slice
/// when they wake. Entry::quantum_us is the longest early run of the VF: its longest slice in
/// `plan` less its debt. reserve_of() shortens all early runs so that no VF falls behind by more
/// than half of the longest slice, even if all VFs wake at once, and leaves out early runs that
/// would be shorter than kMinQuantumUs. Empty for a single demand.
std::vector<Entry> reserve_of(const Plan& plan, std::span<const Demand> demands);

/// True if `entries` give each demand's VF its exact part by weight, and have no other VF. vgpud
/// keeps a table that an earlier vgpud made only if this is true, because lags drift while an
/// inexact table is repeated.
bool is_fair_table(std::span<const Entry> entries, std::span<const Demand> demands);

}  // namespace vgpu::daemon::scheduler
