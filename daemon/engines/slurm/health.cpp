// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/health.h"

#include "daemon/engines/slurm/jobs.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::slurm {

namespace {

constexpr std::string_view kGpuOk = "ok";

/// The published values, in the form that PublishedPort records.
std::string text_of(const Counts& counts, const std::string& condition) {
    return fmt::format("{}\n{}", with_counts("", counts), condition);
}

}  // namespace

std::vector<std::string> Health::check() {
    const HostState now = read_host_state();
    const std::string published = text_of(now.vfs, now.condition);
    if (published_.load(kPublishedFor) != published) {
        published_.forget();
        if (const auto sent = publish(now); !sent) log_.push_back(sent.error().cause);
    }
    if (const auto ended = end_left_claims(); !ended) log_.push_back(ended.error().cause);
    return std::exchange(log_, {});
}

/// Slurm may use the free VFs and the VFs that jobs of this cluster have.
Health::HostState Health::read_host_state() {
    const auto claims = vgpud_.claims();
    const auto capacity = vgpud_.capacity();
    claims_ = claims.value_or(std::vector<Claim>{});
    if (!claims) return {.vfs = {}, .condition = claims.error().cause};
    if (!capacity) return {.vfs = {}, .condition = capacity.error().cause};
    HostState state;
    for (const Capacity& row : *capacity) {
        if (!row.profile.empty()) state.vfs[row.profile] += row.free;
        if (row.gpu_state != kGpuOk && state.condition.empty())
            state.condition = fmt::format("{} is {}", row.gpu, row.gpu_state);
    }
    for (const Claim& claim : *claims) {
        const bool is_free = claim.is_lease_over && !claim.is_open;
        if (!claim.profile.empty() && !is_free && life_of(claim.owner, cluster_))
            ++state.vfs[claim.profile];
    }
    return state;
}

/// Publishes the capacity first, so that a resumed host never offers VFs that it does not have.
Result<> Health::publish(const HostState& host_state) {
    TRY(const Node node, slurm_.this_node());
    if (host_state.condition.empty()) TRY_VOID(publish_gres(node, host_state.vfs));
    TRY(const bool is_known, publish_state(node, host_state.condition));
    if (is_known) published_.save(text_of(host_state.vfs, host_state.condition));
    return {};
}

Result<> Health::publish_gres(const Node& node, const Counts& counts) {
    const std::string gres = with_counts(node.gres, counts);
    if (gres == node.gres || (gres.empty() && node.gres == "(null)")) return {};
    TRY_VOID(slurm_.set_gres(gres));
    log_.push_back(fmt::format("published {}", gres));
    return {};
}

Result<bool> Health::publish_state(const Node& node, const std::string& condition) {
    const bool is_own_drain = node.is_drained && node.reason.starts_with(kReasonPrefix);
    if (node.is_drained && !is_own_drain) return condition.empty();
    if (condition.empty()) {
        if (!is_own_drain) return true;
        TRY_VOID(slurm_.resume());
        log_.emplace_back("resumed the host");
        return true;
    }
    const std::string reason = std::string(kReasonPrefix) + condition;
    if (is_own_drain && node.reason == reason) return true;
    TRY_VOID(slurm_.drain(reason));
    log_.push_back(fmt::format("drained the host: {}", condition));
    return true;
}

/// Ends the claims of a life of a job only if slurmctld does not list this life on this host,
/// slurmd has no step of the job, and no client has a VF of the life open. check() reads the claims
/// before it asks slurmctld, so the claims of a life that begins in between are not in claims_.
Result<> Health::end_left_claims() {
    std::map<std::string, bool> left;  // by owner: true if a VF of the owner is open
    for (const Claim& claim : claims_)
        if (life_of(claim.owner, cluster_)) left[claim.owner] |= claim.is_open;
    std::erase_if(left, [](const auto& entry) { return entry.second; });
    if (left.empty()) return {};
    TRY(const auto steps, slurm_.steps());
    std::erase_if(left, [&](const auto& entry) {
        return steps.contains(life_of(entry.first, cluster_)->id);
    });
    if (left.empty()) return {};
    TRY(const auto jobs, slurm_.jobs_here());
    for (const auto& [owner, is_open] : left) {
        if (jobs.contains(*life_of(owner, cluster_))) continue;
        TRY(const std::uint32_t ended, vgpud_.unassign(owner));
        if (ended > 0)
            log_.push_back(fmt::format("ended the claims of '{}': its job is over", owner));
    }
    return {};
}

}  // namespace vgpu::slurm
