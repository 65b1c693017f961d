// SPDX-License-Identifier: MIT
//
// Contract: what an operator asks of the engine for one VF, in the operator's units; and the
// admission test that turns the contracts of all VFs of one engine into policies that hold, or
// refuses with the numbers that would fit. What is admitted is guaranteed while the device does
// what Engine says; what a hang or an overrun costs is charged to its VF and bounded by its
// preempt_timeout_ms, outside these guarantees. Pure. Called before anything is changed.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/scheduler/scheduler.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vgpu::daemon::scheduler {

enum class SlotMode : std::uint8_t {
    WorkConserving,  ///< a VF without work is passed over
    Strict,          ///< it keeps its slots; the engine idles there
    Gang,            ///< min_pct of latency_ms as one slot, at the same time on every GPU; no more
};

/// Defaults are those of a VF that is created with no options. Ranges are checked by validate();
/// percentages are of the engine's time, fractions count (to 0.0001 % for max_pct).
struct Contract {
    std::uint32_t weight = 100;  ///< 1..10000; share of what is not reserved
    Band band = Band::Normal;
    double min_pct = 0;               ///< of the engine, in every latency_ms
    double max_pct = 100;             ///< in the long run; 100: no cap
    double burst_ms = 0;              ///< with max_pct: beyond it at once; 0: one quantum
    double latency_ms = 0;            ///< period of min_pct, of which bursts may use five at
                                      ///< once; 0: half of max_gap_ms, one at a time
    double max_gap_ms = 60;           ///< longest time off the engine with work and tokens
    double quantum_ms = 6;            ///< longest slice; 0: unlimited, for a VF alone only
    double preempt_timeout_ms = 500;  ///< to leave the engine, before it is reset
    SlotMode mode = SlotMode::WorkConserving;
    double phase_ms = 0;  ///< with Gang: where in latency_ms, counted by the host's clock
};

/// What the device can do, and how much of it may be promised.
/// All times in ns. The defaults are what admission counts with in the product; reservable_ppm
/// keeps a tenth of the engine for everything that has no reservation.
struct Engine {
    std::int64_t switch_ns = 100'000;        ///< world switch
    std::int64_t min_run_ns = 100'000;       ///< shortest slice; not pre-empted before
    std::uint32_t reservable_ppm = 900'000;  ///< for reservations, their switches included
};

struct Party {
    std::uint32_t vf = 0;
    Contract contract{};
    std::string_view name{};  ///< for messages; empty: its number
};

/// Both vectors are in the order of the parties.
struct Admission {
    std::vector<VfPolicy> policies;          ///< one for each party
    std::vector<std::int64_t> worst_gap_ns;  ///< bound on the time off the engine with work
    double reserved_pct = 0;                 ///< switches included
};

/// What a VF gets beside its entries in a table that the PF core repeats, and how long that table
/// may leave it out.
/// The VF's contract in the units of a run table.
struct TableTerms {
    VfPolicy policy{};              ///< request_ns as asked for: the planner shortens slices
    std::int64_t table_gap_ns = 0;  ///< of the table's own time; kNoGapLimit: its reservation
                                    ///< keeps its gap, or it is alone
};
inline constexpr std::int64_t kNoGapLimit = INT64_MAX;

struct TableAdmission {
    std::vector<TableTerms> terms;  ///< one for each party
    double reserved = 0;            ///< part of the engine, 0..1, switches included
    std::int64_t budgets_ns = 0;    ///< that may come at once, switches included

    /// How long `table_ns` of the table's time may last.
    /// Reservations run beside the table: all their budgets may come in one gap, and after that
    /// they take their part of all time.
    [[nodiscard]] std::int64_t real_ns(std::int64_t table_ns) const {
        return static_cast<std::int64_t>(static_cast<double>(table_ns + budgets_ns) /
                                         (1 - reserved));
    }
};

/// OutOfRange with the field, its value and its range, unless each field makes sense by itself.
/// Also OutOfRange for members that contradict each other: latency_ms without min_pct, min_pct
/// above max_pct, phase_ms outside mode gang, a cap whose bucket cannot hold one budget.
Result<> validate(const Party& party);

/// As admit(), for tables: reservations are tested, and gaps as far as weights have no part in
/// them. What gap a table leaves is its planner's to find out and to refuse.
/// OutOfRange or NoSchedule as validate() and admit(). O(n^2) in the parties, of which a GPU has at
/// most 16.
Result<TableAdmission> admit_for_table(std::span<const Party> parties, const Engine& engine);

/// NoSchedule, naming the VF and what would fit, if the contracts cannot all be kept at once.
/// Reservations by Baker's test for earliest deadline first with blocking (stack resource policy),
/// gangs by their phases, gaps by shortening slices until the bound of docs/scheduling.md holds.
/// The policies' request_ns may therefore be shorter than the contracts' quantum_ms, never longer.
Result<Admission> admit(std::span<const Party> parties, const Engine& engine);

}  // namespace vgpu::daemon::scheduler
