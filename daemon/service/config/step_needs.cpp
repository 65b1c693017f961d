// SPDX-License-Identifier: MIT
#include "daemon/service/config/step_needs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

/// "gpu0/vf2 ('web': a client has it open), …": the VFs for which `counts(vf)` is true, then
/// `others`.
template <typename Counts>
std::string list_users(const GpuInventory& gpu, const Counts& counts,
                       const std::vector<std::string>& others) {
    std::vector<std::string> users;
    for (const InventoryVf& vf : gpu.vfs)
        if (counts(vf))
            users.push_back(
                fmt::format("{}/vf{} ('{}': {})", gpu.id, vf.vf, vf.spec.name, use_of(vf)));
    users.insert(users.end(), others.begin(), others.end());
    return fmt::format("{}", fmt::join(users, ", "));
}

}  // namespace

std::string use_of(const InventoryVf& vf) {
    const std::string owner = vf.is_lease_over ? "" : vf.owner.name;
    const std::string runs = vf.has_running_domain ? ", which runs" : "";
    if (vf.is_attached && !owner.empty())
        return fmt::format("a client has it open; it belongs to '{}'{}", owner, runs);
    if (vf.is_attached) return "a client has it open";
    return owner.empty() ? "" : fmt::format("it belongs to '{}'{}", owner, runs);
}

bool is_blocking(const InventoryVf& vf) {
    return vf.is_attached || vf.has_running_domain;
}

void set_needs(Step& step, const GpuInventory& gpu, Need need) {
    step.needs = need.needs;
    if (need.needs != Needs::AllIdle) return;
    if (!step.vf_count) step.why = fmt::format("{} {}", words_of(need.change), text_of(need.needs));
    step.in_use = list_users(
        gpu, [](const InventoryVf& vf) { return !use_of(vf).empty(); }, gpu.other_users);
    step.blocked = list_users(gpu, is_blocking, gpu.other_users);
}

Result<std::uint32_t> vf_limit(const GpuInventory& gpu, const std::set<std::uint32_t>& kept,
                               const std::vector<Step>& creates) {
    const Ability& ability = gpu.abilities[Change::Vfs];
    if (ability.needs == Needs::Nothing) return gpu.total_vfs;
    std::set<std::uint32_t> taken = kept;
    if (gpu.abilities.can(Change::Vfs))
        taken.insert(gpu.used_numbers.begin(), gpu.used_numbers.end());
    std::size_t unnumbered = 0;
    std::uint32_t limit = gpu.enabled_vfs;
    for (const Step& step : creates) {
        if (step.vf == 0) ++unnumbered;
        taken.insert(step.vf);
        limit = std::max(limit, step.vf);
    }
    taken.erase(0);
    // how many numbers up to `limit` are not taken
    const auto free = [&] {
        return limit - std::distance(taken.begin(), taken.upper_bound(limit));
    };
    while (limit < gpu.total_vfs && free() < static_cast<std::ptrdiff_t>(unnumbered)) ++limit;
    if (limit == gpu.enabled_vfs) return limit;
    TRY_VOID(check_offered(gpu.id, gpu.abilities, Change::Vfs, ""));
    return std::max(limit, static_cast<std::uint32_t>(ability.min));
}

bool needs_enable(const GpuInventory& gpu, std::uint32_t limit) {
    return gpu.abilities[Change::Vfs].needs == Needs::AllIdle && limit > gpu.enabled_vfs;
}

Step enable_step(const GpuInventory& gpu, std::uint32_t count) {
    Step step{.action = Action::Enable,
              .gpu = gpu.id,
              .vf_count = VfCount{.from = gpu.enabled_vfs, .to = count},
              .why = fmt::format("{} -> {}: {}", gpu.enabled_vfs, count,
                                 gpu.enabled_vfs == 0
                                     ? "VFs are enabled"
                                     : "all VFs are disabled and enabled again, and lose the "
                                       "content of their VRAM")};
    set_needs(step, gpu, {gpu.abilities[Change::Vfs].needs, Change::Vfs});
    return step;
}

void add_sizes(std::vector<Step>& steps) {
    for (auto enable = steps.begin(); enable != steps.end(); ++enable) {
        if (!enable->vf_count) continue;
        for (auto step = enable + 1; step != steps.end(); ++step) {
            if (step->gpu != enable->gpu) continue;
            if (step->action == Action::Resize || step->action == Action::Destroy) break;
            if (step->action == Action::Create)
                enable->vf_count->vram_bytes[step->vf] = step->to->resources.vram_bytes;
        }
    }
}

}  // namespace vgpu::daemon
