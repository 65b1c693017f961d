// SPDX-License-Identifier: MIT
#include "daemon/service/config/apply_intent.h"

#include "daemon/service/config/change_plan.h"
#include "daemon/service/config/step_needs.h"

#include <algorithm>
#include <utility>

namespace vgpu::daemon {

namespace {

DesiredGpu current_section(const GpuInventory& gpu) {
    DesiredGpu section{.gpu = gpu.id, .scheduler = change_to(gpu.settings)};
    for (const InventoryVf& vf : gpu.vfs)
        section.vfs.push_back(
            {.spec = vf.spec, .vf = vf.vf, .owner = vf.owner, .is_open = vf.is_attached});
    return section;
}

DesiredGpu planned_section(GpuInventory gpu, const ChangePlan& plan) {
    for (const Step& step : plan.steps)
        if (step.gpu == gpu.id) perform(step, gpu);
    DesiredGpu section = current_section(gpu);
    // Keep only spec and number, because owners and open VFs are recorded only in `before`.
    for (DesiredVf& vf : section.vfs) vf = DesiredVf{.spec = std::move(vf.spec), .vf = vf.vf};
    return section;
}

/// The VF with this UUID as it was before the apply; null if it did not exist.
const DesiredVf* find_before(const ApplyIntent& intent, const std::string& gpu_id,
                             const Uuid& uuid) {
    for (const DesiredGpu& gpu : intent.before) {
        const auto at = std::find_if(gpu.vfs.begin(), gpu.vfs.end(),
                                     [&uuid](const DesiredVf& vf) { return vf.spec.uuid == uuid; });
        if (gpu.gpu == gpu_id && at != gpu.vfs.end()) return &*at;
    }
    return nullptr;
}

/// The VF of `step` as it was before the apply; null if it did not exist.
const DesiredVf* find_before(const ApplyIntent& intent, const Step& step) {
    return step.from ? find_before(intent, step.gpu, step.from->uuid) : nullptr;
}

/// True if the VF is unused, or if the apply is forced and the VF has the claim that it had when
/// the apply began and is open only if it was open then. `before`: the VF at that time; null if it
/// did not exist.
bool is_use_allowed(const ApplyIntent& intent, const DesiredVf* before, const InventoryVf& now) {
    if (use_of(now).empty()) return true;
    if (!intent.is_forced || before == nullptr) return false;
    return now.owner.generation == before->owner.generation &&
           (!now.is_attached || before->is_open);
}

/// True if no user prevents a step of the GPU itself (is_step_allowed()).
bool are_all_uses_allowed(const ApplyIntent& intent, const GpuInventory& gpu) {
    return gpu.other_users.empty() && std::ranges::all_of(gpu.vfs, [&](const InventoryVf& vf) {
               return !is_blocking(vf) &&
                      is_use_allowed(intent, find_before(intent, gpu.id, vf.spec.uuid), vf);
           });
}

/// The current VF that has the number of `step`; null if there is none.
const InventoryVf* find_now(const Step& step, std::span<const GpuInventory> gpus) {
    for (const GpuInventory& gpu : gpus) {
        const auto at = std::find_if(gpu.vfs.begin(), gpu.vfs.end(),
                                     [&step](const InventoryVf& vf) { return vf.vf == step.vf; });
        if (gpu.id == step.gpu && at != gpu.vfs.end()) return &*at;
    }
    return nullptr;
}

}  // namespace

ApplyIntent intent_of(const ChangePlan& plan, bool is_forced, std::span<const GpuInventory> gpus) {
    ApplyIntent intent{.label = plan.label, .is_forced = is_forced, .after = {}, .before = {}};
    for (const GpuInventory& gpu : gpus) {
        intent.after.push_back(planned_section(gpu, plan));
        intent.before.push_back(current_section(gpu));
    }
    return intent;
}

std::vector<std::string> gpus_of(const ApplyIntent& intent) {
    std::vector<std::string> ids;
    for (const DesiredGpu& gpu : intent.after) ids.push_back(gpu.gpu);
    return ids;
}

std::vector<std::string> names_of(const ApplyIntent& intent) {
    std::vector<std::string> names;
    for (const auto* gpus : {&intent.after, &intent.before})
        for (const DesiredGpu& gpu : *gpus)
            for (const DesiredVf& vf : gpu.vfs) names.push_back(vf.spec.name);
    return names;
}

std::set<std::uint64_t> claims_before(const ApplyIntent& intent, std::string_view gpu,
                                      std::string_view owner, Claims which) {
    std::set<std::uint64_t> generations;
    for (const DesiredGpu& one : intent.before) {
        if (one.gpu != gpu) continue;
        for (const DesiredVf& vf : one.vfs)
            if (is_same_owner(vf.owner.name, owner) &&
                (which == Claims::All || !vf.owner.is_persistent))
                generations.insert(vf.owner.generation);
    }
    return generations;
}

bool is_step_allowed(const ApplyIntent& intent, const Step& step,
                     std::span<const GpuInventory> gpus) {
    if (step.vf == 0)
        return std::ranges::all_of(gpus, [&](const GpuInventory& gpu) {
            return gpu.id != step.gpu || are_all_uses_allowed(intent, gpu);
        });
    const InventoryVf* now = find_now(step, gpus);
    if (now == nullptr) return false;
    return is_use_allowed(intent, find_before(intent, step), *now);
}

bool is_vf_changed(const ApplyIntent& intent, const Step& step) {
    const DesiredVf* before = find_before(intent, step);
    return before == nullptr || before->spec != *step.from;
}

}  // namespace vgpu::daemon
