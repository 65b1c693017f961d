// SPDX-License-Identifier: MIT
//
// Contract: the engine time that an operator requests for one VF, in the operator's units. Also the
// admission test, which turns the contracts of all VFs of one engine into terms of a run table, or
// refuses with numbers that would fit. Admitted contracts are guaranteed while the device behaves
// as Engine says. The guarantees do not cover hangs and overruns. The PF core charges the time
// of a hang or overrun to the VF that causes it, up to preempt_timeout_ms.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/scheduler/policy.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vgpu::daemon::scheduler {

enum class SlotMode : std::uint8_t {
    WorkConserving,  ///< a VF without work is passed over
    Strict,          ///< the VF keeps its slots; without work, the engine idles in them
    Gang,            ///< one slot (min_pct of latency_ms) in every latency_ms, at the same time on
                     ///< every GPU, and no other engine time
};

/// The defaults are those of a VF created without options. validate() has the ranges. Percentages
/// are of the engine's time and may have fractions (max_pct: steps of 0.0001 %).
struct Contract {
    std::uint32_t weight = 100;  ///< 1..10000; share of the time that is not reserved
    PriorityClass priority_class = PriorityClass::Normal;
    double min_pct = 0;      ///< reservation in every latency_ms
    double max_pct = 100;    ///< cap in the long run; 100: no cap
    double burst_ms = 0;     ///< excess over max_pct allowed at once; 0: one quantum
    double latency_ms = 0;   ///< period of min_pct; up to five budgets may be used at once.
                             ///< 0: half of max_gap_ms, and one budget at a time
    double max_gap_ms = 60;  ///< longest time off the engine with work and tokens
    double quantum_ms = 6;   ///< longest slice
    double preempt_timeout_ms = 500;  ///< time to leave the engine before a reset
    SlotMode mode = SlotMode::WorkConserving;
    double phase_ms = 0;  ///< Gang: offset in latency_ms, by the host's clock
};

/// The device's times, and the part of the engine that may be reserved. reservable_ppm keeps a
/// tenth of the engine for VFs without reservations.
struct Engine {
    std::int64_t switch_ns = 100'000;
    std::int64_t min_run_ns = 100'000;       ///< shortest slice; a VF is never preempted earlier
    std::uint32_t reservable_ppm = 900'000;  ///< part for reservations and their switches
};

/// One VF in the admission test.
struct ContractParty {
    std::uint32_t vf = 0;
    Contract contract{};
    std::string_view name{};  ///< for messages; empty: the number is used
};

/// One VF's contract in the units of a run table.
struct TableTerms {
    VfPolicy policy{};  ///< its request_ns is the requested slice; the planner may shorten slices
    std::int64_t table_gap_ns = 0;  ///< longest gap, in the table's own time (planner.h, Limits);
                                    ///< kNoGapLimit: no limit, because the reservation bounds the
                                    ///< gap, or the VF is alone or a gang
};
inline constexpr std::int64_t kNoGapLimit = INT64_MAX;

struct TableAdmission {
    std::vector<TableTerms> terms;  ///< one per party
    double reserved = 0;            ///< reserved part of the engine, 0..1, switches included
    std::int64_t budgets_ns = 0;    ///< sum of all budgets that may run in a row, with switches
};

/// OutOfRange with the field, its value and its range. Also OutOfRange for fields that contradict
/// each other, such as latency_ms without min_pct, min_pct above max_pct, phase_ms outside mode
/// gang, or a cap whose bucket cannot hold one budget.
Result<> validate(const ContractParty& party);

/// NoSchedule, with the VF and any numbers that would fit, if the contracts cannot all be kept. For
/// reservations, uses Baker's test for EDF (earliest deadline first) with blocking (stack resource
/// policy). Slots of gangs must not overlap. Tests gaps without the effect of weights; the planner
/// refuses weights that make a gap too long. OutOfRange as validate(). O(n²).
Result<TableAdmission> admit_for_table(std::span<const ContractParty> parties,
                                       const Engine& engine);

}  // namespace vgpu::daemon::scheduler
