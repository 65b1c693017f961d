// SPDX-License-Identifier: MIT
//
// Contract: the engine time that an operator requests for one VF, in the operator's units. This
// file also has the admission test for the contracts of all VFs of one engine. The test converts
// the contracts to terms of a run table, or refuses them and names values that would fit. The PF
// core keeps admitted contracts while world switches and preemptions take no longer than Engine
// says. Exceptions are hangs and overruns, whose time is charged to the VF that causes them.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/scheduler/policy.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vgpu::daemon::scheduler {

/// How the PF core treats a VF's entries in the run table.
enum class SlotMode : std::uint8_t {
    WorkConserving,  ///< skips the entries while the VF has no work
    Strict,          ///< does not skip them: without work, the engine idles in them
    /// Skips the entries. The VF gets one slot in every period of latency_ms: min_pct of the
    /// period, from phase_ms on. It gets no other engine time, except in full access. VFs with the
    /// same three values on several GPUs are on their engines at the same time.
    Gang,
};

/// One VF's request. validate() has the ranges. Percentages are of the engine's time and may have
/// fractions (max_pct: steps of 0.0001 %). The defaults, except preempt_timeout_ms, are the values
/// that apply if neither the VF nor its GPU has settings.
struct Contract {
    std::uint32_t weight = 100;  ///< 1..10000; for the time that is not reserved
    PriorityClass priority_class = PriorityClass::Normal;
    double min_pct = 0;      ///< reserved part of every period (latency_ms)
    double max_pct = 100;    ///< cap in the long run; 100: no cap
    double burst_ms = 0;     ///< size of the cap's token bucket; raised to quantum_ms
    double latency_ms = 0;   ///< period of min_pct; the VF may use 1 to 5 budgets at once
                             ///< (Reservation::ahead). 0: half of max_gap_ms, one budget at once
    double max_gap_ms = 60;  ///< longest time off the engine while the VF has work and tokens
    double quantum_ms = 6;   ///< longest slice
    double preempt_timeout_ms = 500;  ///< time to leave the engine before a reset
    SlotMode mode = SlotMode::WorkConserving;
    double phase_ms = 0;  ///< Gang: start of the slot, counted from each multiple of latency_ms
                          ///< on CLOCK_MONOTONIC
};

/// The device's times, and the part of the engine that may be reserved. The default leaves a tenth
/// of the engine unreserved.
struct Engine {
    std::int64_t switch_ns = 100'000;        ///< time of one world switch
    std::int64_t min_run_ns = 100'000;       ///< shortest slice, and assumed delay of a preemption
    std::uint32_t reservable_ppm = 900'000;  ///< maximum in the test for reservations
};

/// One VF in the admission test.
struct ContractParty {
    std::uint32_t vf = 0;  ///< number of the VF, only for messages
    Contract contract{};
    std::string_view name{};  ///< for messages; empty: the number is used
};

/// One VF's policy, and its gap limit for the planner.
struct TableTerms {
    VfPolicy policy{};
    /// Limit of the gap, in the table's own time (planner.h, Limits). kNoGapLimit: the table needs
    /// no limit, because the VF's reservation bounds the gap, or the VF is alone or a gang.
    std::int64_t table_gap_ns = 0;
};
inline constexpr std::int64_t kNoGapLimit = INT64_MAX;

/// The result of the admission test.
struct TableAdmission {
    std::vector<TableTerms> terms;  ///< one per party, in the same order
    double reserved = 0;            ///< reserved part of the engine, 0..1, switches included
    std::int64_t budgets_ns = 0;    ///< time of all budgets that may run in a row, with switches
};

/// Checks one contract alone. Fails with OutOfRange, which names the field, its value and its
/// range. Fields that contradict each other are also OutOfRange, such as latency_ms without
/// min_pct, min_pct above max_pct, phase_ms without mode gang, mode gang without min_pct or
/// latency_ms, or a cap whose bucket cannot hold one budget.
Result<> validate(const ContractParty& party);

/// Admits the contracts of all VFs of one engine together. Fails as validate(), or with NoSchedule,
/// which names the VF and the values that would fit, if any. Reservations must pass Baker's test
/// for EDF (earliest deadline first) with blocking (stack resource policy). Slots of gangs must not
/// overlap. The test of gaps ignores weights; the planner refuses weights that make a gap too long.
/// O(n²) for n parties.
Result<TableAdmission> admit_for_table(std::span<const ContractParty> parties,
                                       const Engine& engine);

}  // namespace vgpu::daemon::scheduler
