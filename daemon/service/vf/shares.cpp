// SPDX-License-Identifier: MIT
#include "daemon/service/vf/shares.h"

#include "daemon/service/vf/settings.h"

#include <algorithm>

namespace vgpu::daemon {

namespace {

constexpr double kUsPerMs = 1000;

std::uint64_t us_of(double ms) {
    return static_cast<std::uint64_t>(ms * kUsPerMs);
}

/// The smaller of two bounds; a bound of 0 means no bound.
std::uint64_t least_bound(std::uint64_t one, std::uint64_t other) {
    if (one == 0 || other == 0) return std::max(one, other);
    return std::min(one, other);
}

}  // namespace

VfShare share_of(const Abilities& abilities, const GpuSettings& settings, std::uint32_t vf,
                 const VfSpec& spec) {
    const VfQos& qos = spec.qos;
    const bool is_by_weight = has_quanta_by_weight(abilities);
    VfShare share{.vf = vf,
                  .weight = spec.weight,
                  .quantum_us = spec.quantum_us,
                  .preempt_timeout_us = us_of(qos.preempt_timeout_ms),
                  .name = spec.name};
    if (share.quantum_us == 0 && !is_by_weight) share.quantum_us = settings.quantum_us;
    if (abilities.can(Change::MinPct)) share.min_pct = qos.min_pct;
    if (abilities.can(Change::MaxGapMs)) share.max_wait_us = us_of(qos.max_gap_ms);
    if (abilities.can(Change::LatencyMs))
        share.max_wait_us = least_bound(share.max_wait_us, us_of(qos.latency_ms));
    return share;
}

Result<Quanta> quanta_of(const Abilities& abilities, const GpuSettings& settings,
                         std::span<const VfSpec> vfs) {
    std::vector<VfShare> shares;
    for (const VfSpec& vf : vfs)
        shares.push_back(
            share_of(abilities, settings, static_cast<std::uint32_t>(shares.size() + 1), vf));
    return quanta_of(shares, abilities.pf_quantum_ms.value_or(1));
}

std::map<std::string, std::string> contract_words(const Abilities& abilities, const VfSpec& spec) {
    std::map<std::string, std::string> words;
    const auto keys = setting_keys(Section::Scheduler);
    for (const ChangedValue& one : differences(VfSpec{}, spec)) {
        const std::string key(key_of(one.change));
        if (std::ranges::find(keys, key) == keys.end()) continue;
        words[key] = !abilities.can(one.change)             ? "refused"
                     : abilities[one.change].is_approximate ? "approximated"
                                                            : "kept";
    }
    return words;
}

}  // namespace vgpu::daemon
