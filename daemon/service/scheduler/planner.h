// SPDX-License-Identifier: MIT
//
// Planner: weights in, run table out. A deadline schedule over one cycle, unrolled into at most
// 1024 (VF, quantum) entries that the PF core repeats for ever, so the table must be fair by
// itself: one cycle gives every VF exactly its part of the cycle, in whole microseconds, and the
// schedule starts from the lag each VF has now and ends at that same lag, which keeps it within the
// bound however often and wherever tables are replaced. The order is EEVDF (earliest eligible
// virtual deadline first), which bounds every lag by one quantum, or one that keeps the lags
// smaller still where the weights allow it: 1:1:2:4 within half a quantum, which leaves the rest
// for overruns. If the lags there are make that impossible they are paid back, at most a quantum
// per table (Plan::corrects); the owner of such a table replaces it after one cycle. Beside the
// table goes its reserve: advances for VFs that may wake while it is in force.
//
// Pure: no clock, no I/O. All arithmetic is exact (integer microseconds and nanoseconds, 128 bits
// where products meet). Called by GpuSchedule; tested against a GPS fluid oracle of its own.
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
/// The shortest slice that is worth its world switch, and the least the uapi takes.
inline constexpr std::uint32_t kMinQuantumUs = 100;
/// The longest the uapi takes.
inline constexpr std::uint32_t kMaxQuantumUs = 1'000'000;
inline constexpr std::uint32_t kDefaultQuantumUs = 6'000;
inline constexpr std::uint32_t kDefaultMaxGapMs = 60;

/// What one VF asks of the schedule.
struct Claim {
    std::uint32_t vf = 0;
    std::uint32_t weight = kDefaultWeight;
    std::uint32_t quantum_us = kDefaultQuantumUs;  ///< longest slice it wants
    std::int64_t lag_ns = 0;       ///< > 0: it is owed; of all claims about 0 in sum
    bool is_asleep = false;        ///< no work lately: spread evenly over the order of the others
    bool may_wake = false;         ///< no work now: gets a place in the reserve
    std::int64_t debt_ns = 0;      ///< with may_wake: what it still owes, off its place there
    std::uint32_t max_gap_us = 0;  ///< of its own; 0: that of Limits
    std::string_view name{};       ///< for messages; empty: its number
};

/// max_gap_us of a VF that may be left out for as long as it takes.
inline constexpr std::uint32_t kAnyGap = UINT32_MAX;

/// Times in us of the table itself, unless they say otherwise.
struct Limits {
    std::uint32_t max_gap_us = kDefaultMaxGapMs * 1000;  ///< longest time off the engine
    std::uint32_t max_entries = 1024;
    /// What is not the table's: so much may come between two of its slices, and so much of all
    /// time is taken. Messages speak of the time that passes, not of the table's.
    std::uint32_t extra_us = 0;
    double taken = 0;  ///< 0..1
    /// What passes with each turn beyond its slice: world switch, overrun. Slices are shortened for
    /// it as far as that helps; nothing is refused for it.
    std::uint32_t turn_us = 0;
};

/// One turn of the PF core's cycle.
struct Entry {
    std::uint32_t vf = 0;
    std::uint32_t quantum_us = 0;

    bool operator==(const Entry&) const = default;
};

struct Plan {
    std::vector<Entry> entries;
    std::uint32_t quantum_us = 0;    ///< largest entry: the unit of lag
    std::uint64_t cycle_us = 0;      ///< of all entries
    std::uint64_t worst_gap_us = 0;  ///< longest time a VF waits for its next entry; slices alone
    std::int64_t worst_lag_ns = 0;   ///< largest |lag| while the table runs from the given lags
    bool is_exact = true;            ///< one cycle gives each VF exactly its weight's part
    bool corrects = false;           ///< pays lags back; to be replaced after one cycle

    bool operator==(const Plan&) const = default;
};

/// The table for `claims` (at most 16, distinct VFs, weights and quanta in range). NoSchedule, with
/// the numbers that would work, if the gap limit cannot be kept.
/// No claims: an empty plan. One: a single entry, whatever the limits. Tries some dozens of orders,
/// some hundreds where gaps are hard to keep, each in O(entries * VFs).
Result<Plan> plan(std::span<const Claim> claims, Limits limits);
/// Whether plan() makes a table, without making it: an order or two instead of dozens.
Result<> check(std::span<const Claim> claims, Limits limits);

/// Who may pre-empt a running slice on waking while `plan` is in force, and for how long: as long
/// as its longest slice, less its debt; all of them so that nobody else falls behind by more than
/// half a slice, even if all wake at once. What is too short to run is left out.
std::vector<Entry> reserve_of(const Plan& plan, std::span<const Claim> claims);

/// True if `entries` give each claim's VF its exact part and hold no other VF.
/// Ask before a table is kept that somebody else made: one that is not exact would drift when it is
/// repeated.
bool is_fair_table(std::span<const Entry> entries, std::span<const Claim> claims);

}  // namespace vgpu::daemon::scheduler
