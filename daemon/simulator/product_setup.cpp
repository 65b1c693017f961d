// SPDX-License-Identifier: MIT
#include "daemon/simulator/product_setup.h"

#include "daemon/simulator/gang_round.h"
#include "daemon/simulator/product.h"

namespace vgpu::simulator {

daemon::GpuConfig gpu_config() {
    daemon::GpuConfig config;
    config.id = "gpu0";
    config.max_gap_ms = daemon::kMaxGapMs;  // no limit beyond each VF's own max_gap_ms
    return config;
}

ModelGpu::Options device_options(const Simulation& setup) {
    // a round begins kAheadNs after the start, so after kWarmUpNs it is at most kWarmUpNs ahead
    constexpr std::int64_t kAheadNs = 2 * kWarmUpNs;
    constexpr auto kEarliestNs = static_cast<std::int64_t>(kSecond);
    const std::int64_t start_ns = begin_of_round(setup, kEarliestNs + kAheadNs) - kAheadNs;
    return {.total_vfs = kProductVfs,
            .vram_mb = 1024,
            .aperture_mb = 256,
            .cu_count = 8,
            .start_ns = static_cast<std::uint64_t>(start_ns)};
}

daemon::VfQos qos_of(const VfSetup& setup) {
    const daemon::scheduler::Contract& contract = setup.contract;
    daemon::VfQos qos;
    qos.min_pct = contract.min_pct;
    qos.max_pct = contract.max_pct;
    qos.burst_ms = contract.burst_ms;
    qos.latency_ms = contract.latency_ms;
    qos.max_gap_ms = contract.max_gap_ms;
    qos.phase_ms = contract.phase_ms;
    qos.preempt_timeout_ms = setup.preempt_timeout_ms;
    qos.mode = contract.mode;
    qos.priority_class = contract.priority_class;
    return qos;
}

}  // namespace vgpu::simulator
