// SPDX-License-Identifier: MIT
#include "daemon/service/views/views.h"

#include <array>

namespace vgpu::daemon {

namespace {

// Names, each array in the order of its enum: GpuState, vgpu_pf_vf_state, vgpu_pf_reason,
// vgpu_pf_policy. vgpu_pf_policy has no value 0.
constexpr std::array<std::string_view, 6> kGpuStates{
    "starting", "ok", "pf-lost", "device-lost", "version-mismatch", "failed"};
constexpr std::array<std::string_view, VGPU_PF_VF_STATES> kVfStates{
    "absent",  "provisioned", "ready",       "running",   "paused",
    "stopped", "resetting",   "quarantined", "scrubbing", "mismatch"};
constexpr std::array<std::string_view, VGPU_PF_REASONS> kReasons{
    "none",        "operator",     "guest-request",       "guest-flr",
    "detach",      "idle-timeout", "save-timeout",        "load-timeout",
    "run-timeout", "bad-status",   "full-access-timeout", "guard",
    "device-lost"};
constexpr std::array<std::string_view, VGPU_PF_POLICY_MAX_PCT + 1> kPolicies{
    "none",    "exec_quantum_ms", "preempt_timeout_us", "sched_priority", "vram_quota", "weight",
    "min_pct", "max_pct"};

template <std::size_t N>
std::string_view at(const std::array<std::string_view, N>& names, std::size_t index) {
    return index < N ? names[index] : "unknown";
}

}  // namespace

std::string_view name_of(GpuState state) {
    return at(kGpuStates, static_cast<std::size_t>(state));
}

std::string_view vf_state_name(std::uint32_t state) {
    return at(kVfStates, state);
}

std::span<const std::string_view> gpu_state_names() {
    return kGpuStates;
}

std::span<const std::string_view> vf_state_names() {
    return kVfStates;
}

std::string_view reason_name(std::uint32_t reason) {
    return at(kReasons, reason);
}

std::string_view policy_name(std::uint32_t policy) {
    return at(kPolicies, policy);
}

}  // namespace vgpu::daemon
