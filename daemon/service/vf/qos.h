// SPDX-License-Identifier: MIT
//
// VfQos: an operator's scheduling requests for one VF, except weight and quantum. Part of VfSpec;
// takes effect with the next run table.
#pragma once

#include "daemon/service/input/value_kind.h"
#include "daemon/service/scheduler/contract.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

/// Percentages of the engine's time, and times in milliseconds; both may have fractions.
/// schemas/vf_settings.def describes each of them.
struct VfQos {
    double min_pct = 0, max_pct = 100;
    double burst_ms = 0, latency_ms = 0;
    double max_gap_ms = 0;  ///< 0: the GPU's value
    double phase_ms = 0;
    double preempt_timeout_ms = 0;  ///< 0: as provisioned
    scheduler::SlotMode mode = scheduler::SlotMode::WorkConserving;
    scheduler::PriorityClass priority_class = scheduler::PriorityClass::Normal;

    bool operator==(const VfQos&) const = default;
};

inline constexpr std::array kModes{Word{"work-conserving", scheduler::SlotMode::WorkConserving},
                                   Word{"strict", scheduler::SlotMode::Strict},
                                   Word{"gang", scheduler::SlotMode::Gang}};
inline constexpr std::array kPriorityClassWords{Word{"high", scheduler::PriorityClass::High},
                                                Word{"normal", scheduler::PriorityClass::Normal},
                                                Word{"low", scheduler::PriorityClass::Low}};

[[nodiscard]] constexpr std::string_view name_of(scheduler::SlotMode mode) {
    return name_among(kModes, mode);
}
[[nodiscard]] constexpr std::string_view name_of(scheduler::PriorityClass priority_class) {
    return name_among(kPriorityClassWords, priority_class);
}

/// The VF's contract. A max_gap_ms of 0 becomes the GPU's value, and a preempt_timeout_ms of 0
/// becomes the default of Contract.
[[nodiscard]] scheduler::Contract contract_of(const VfQos& qos, std::uint32_t weight,
                                              std::uint32_t quantum_us,
                                              std::uint32_t gpu_max_gap_ms);

}  // namespace vgpu::daemon
