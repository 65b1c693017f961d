// SPDX-License-Identifier: MIT
//
// VfQos: the scheduling parameters of one VF, as the operator sets them, except weight and quantum.
// Part of VfSpec. A change takes effect with the next run table or, for a driver without run
// tables, with the next Backend::set_shares().
#pragma once

#include "daemon/service/input/value_kind.h"
#include "daemon/service/scheduler/contract.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

/// Percentages are of the engine's time; percentages and times may have fractions.
/// schemas/vf_settings.def describes each member and has its range.
struct VfQos {
    double min_pct = 0, max_pct = 100;
    double burst_ms = 0, latency_ms = 0;
    double max_gap_ms = 0;  ///< 0: the GPU's value
    double phase_ms = 0;
    double preempt_timeout_ms = 0;  ///< 0: as provisioned, or the driver's default
    scheduler::SlotMode mode = scheduler::SlotMode::WorkConserving;
    scheduler::PriorityClass priority_class = scheduler::PriorityClass::Normal;

    bool operator==(const VfQos&) const = default;
};

/// The words for modes, in documents, options and D-Bus.
inline constexpr std::array kModes{Word{"work-conserving", scheduler::SlotMode::WorkConserving},
                                   Word{"strict", scheduler::SlotMode::Strict},
                                   Word{"gang", scheduler::SlotMode::Gang}};
/// The words for priority classes.
inline constexpr std::array kPriorityClassWords{Word{"high", scheduler::PriorityClass::High},
                                                Word{"normal", scheduler::PriorityClass::Normal},
                                                Word{"low", scheduler::PriorityClass::Low}};

[[nodiscard]] constexpr std::string_view name_of(scheduler::SlotMode mode) {
    return name_among(kModes, mode);
}
[[nodiscard]] constexpr std::string_view name_of(scheduler::PriorityClass priority_class) {
    return name_among(kPriorityClassWords, priority_class);
}

/// The VF's contract for the admission test. A max_gap_ms of 0 becomes `gpu_max_gap_ms`, and a
/// preempt_timeout_ms of 0 becomes the default of Contract. `quantum_us`: never 0.
[[nodiscard]] scheduler::Contract contract_of(const VfQos& qos, std::uint32_t weight,
                                              std::uint32_t quantum_us,
                                              std::uint32_t gpu_max_gap_ms);

}  // namespace vgpu::daemon
