// SPDX-License-Identifier: MIT
//
// Writes plans as JSON, for the D-Bus method Manager.Plan and the property Job.Plan.
#include "daemon/service/config/change_plan.h"
#include "daemon/service/vf/settings.h"

#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// The settings of a VF in a step: all settings for Set; for other actions weight, quantum,
/// profile, and settings that differ from the default.
OrderedJson scheduling_json(Action action, const VfSpec& vf) {
    OrderedJson json{{"weight", vf.weight}, {"quantum_us", vf.quantum_us}, {"profile", vf.profile}};
    json.update(settings_json(vf, action == Action::Set ? Detail::All : Detail::Special));
    return json;
}

OrderedJson ordered_resources(const VfResources& resources) {
    OrderedJson json{{"vram_bytes", resources.vram_bytes},
                     {"cu_mask", resources.cu_mask},
                     {"doorbell_pages", resources.doorbell_pages},
                     {"preempt_timeout_us", resources.security.preempt_timeout_us},
                     {"full_access_timeout_ms", resources.security.full_access_timeout_ms},
                     {"exclusive_full_access", resources.security.is_exclusive_full_access}};
    for (std::size_t kind = 0; kind < kGuardKinds.size(); ++kind)
        json["guard_" + std::string(kGuardKinds[kind])] = resources.security.guard_limits[kind];
    return json;
}

/// The properties that a step with `action` changes, with their values in `vf`.
OrderedJson changed_properties(Action action, const VfSpec& vf) {
    OrderedJson json = OrderedJson::object();
    const bool is_all = action == Action::Create || action == Action::Destroy;
    if (is_all || action == Action::Rename) json["name"] = vf.name;
    if (is_all || action == Action::Set) json.update(scheduling_json(action, vf));
    if (is_all || action == Action::Resize) json.update(ordered_resources(vf.resources));
    return json;
}

OrderedJson settings_json(const GpuSettings& settings) {
    return {{"quantum_us", settings.quantum_us}, {"max_gap_ms", settings.max_gap_ms}};
}

/// Drops the members that are equal in `from` and `to`.
void drop_same(OrderedJson& from, OrderedJson& to) {
    const OrderedJson before = from;
    for (const auto& [key, value] : before.items()) {
        if (!to.contains(key) || to.at(key) != value) continue;
        from.erase(key);
        to.erase(key);
    }
}

OrderedJson step_json(const Step& step) {
    OrderedJson from = OrderedJson::object(), to = OrderedJson::object();
    if (step.from) from = changed_properties(step.action, *step.from);
    if (step.to) to = changed_properties(step.action, *step.to);
    if (step.gpu_from) from = settings_json(*step.gpu_from);
    if (step.gpu_to) to = settings_json(*step.gpu_to);
    if (step.vf_count) {
        from["vfs"] = step.vf_count->from;
        to["vfs"] = step.vf_count->to;
    }
    drop_same(from, to);
    const VfSpec* vf = step.from ? &*step.from : step.to ? &*step.to : nullptr;
    OrderedJson json{{"action", name_of(step.action)},
                     {"target", target_of(step)},
                     {"name", vf != nullptr ? vf->name : ""},
                     {"from", std::move(from)},
                     {"to", std::move(to)},
                     {"disruption", name_of(disruption_of(step))},
                     {"needs", name_of(step.needs)},
                     {"in_use", step.in_use},
                     {"blocked", step.blocked},
                     {"condition", step.condition},
                     {"why", step.why}};
    if (!step.contract.empty()) json["contract"] = step.contract;
    return json;
}

OrderedJson room_json(const GpuRoom& room) {
    OrderedJson json{{"gpu", room.gpu},
                     {"vram_bytes", room.vram_bytes},
                     {"pf_vram_bytes", room.pf_vram_bytes},
                     {"planned_vram_bytes", room.planned_vram_bytes}};
    if (room.cu_count) json["compute_units"] = *room.cu_count;
    if (room.doorbell_pages) json["doorbell_pages"] = *room.doorbell_pages;
    for (const PlannedQuantum& vf : room.quanta)
        json["quanta"].push_back({{"name", vf.name},
                                  {"quantum_us", vf.quantum_us},
                                  {"worst_wait_us", vf.worst_wait_us}});
    return json;
}

}  // namespace

std::string encode_change_plan(const ChangePlan& plan) {
    OrderedJson json{{"schema", "vgpu-plan-1"},       {"label", plan.label},
                     {"is_empty", plan.is_empty()},   {"disruption", name_of(plan.disruption())},
                     {"steps", OrderedJson::array()}, {"gpus", OrderedJson::array()}};
    for (const Step& step : plan.steps) json["steps"].push_back(step_json(step));
    for (const GpuRoom& room : plan.rooms) json["gpus"].push_back(room_json(room));
    return json.dump(2) + "\n";
}

}  // namespace vgpu::daemon
