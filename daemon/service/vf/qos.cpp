// SPDX-License-Identifier: MIT
#include "daemon/service/vf/qos.h"

namespace vgpu::daemon {

scheduler::Contract contract_of(const VfQos& qos, std::uint32_t weight, std::uint32_t quantum_us,
                                std::uint32_t gpu_max_gap_ms) {
    constexpr double kUsPerMs = 1000;
    scheduler::Contract contract{.weight = weight,
                                 .priority_class = qos.priority_class,
                                 .min_pct = qos.min_pct,
                                 .max_pct = qos.max_pct,
                                 .burst_ms = qos.burst_ms,
                                 .latency_ms = qos.latency_ms,
                                 .max_gap_ms = qos.max_gap_ms,
                                 .quantum_ms = quantum_us / kUsPerMs,
                                 .mode = qos.mode,
                                 .phase_ms = qos.phase_ms};
    if (contract.max_gap_ms == 0) contract.max_gap_ms = gpu_max_gap_ms;
    if (qos.preempt_timeout_ms > 0) contract.preempt_timeout_ms = qos.preempt_timeout_ms;
    return contract;
}

}  // namespace vgpu::daemon
