// SPDX-License-Identifier: MIT
//
// Orders the steps by trying them on a model (GpuInventory) of each GPU. Each round adds to the
// plan the first of these that is possible: one Enable; all Set and Rename steps of a GPU; one
// Create; one Resize; one Destroy. A Destroy, or a Resize to less VRAM, is always possible, and
// frees what other steps wait for. Each round uses up steps or makes the only Enable of a GPU, so
// the rounds end. If steps are left after the last round, make_change_plan() fails.
#include "daemon/service/config/change_plan.h"

#include "daemon/service/config/capacity.h"
#include "daemon/service/config/step_needs.h"
#include "daemon/service/vf/settings.h"
#include "daemon/service/vf/shares.h"
#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <utility>

namespace vgpu::daemon {

namespace {

/// The rows of kActions are in the order of Action.
struct ActionRow {
    Action action;
    std::string_view name;
    Disruption disruption;
};
constexpr std::array kActions{ActionRow{Action::Keep, "keep", Disruption::None},
                              ActionRow{Action::Enable, "enable", Disruption::VfRestart},
                              ActionRow{Action::Set, "set", Disruption::None},
                              ActionRow{Action::Rename, "rename", Disruption::None},
                              ActionRow{Action::Create, "create", Disruption::None},
                              ActionRow{Action::Resize, "resize", Disruption::VfRestart},
                              ActionRow{Action::Destroy, "destroy", Disruption::VfLoss}};
/// Names of the values of Disruption, in their order.
constexpr std::array<std::string_view, 3> kDisruptions{"none", "vf-restart", "vf-loss"};

const ActionRow& row_of(Action action) {
    return kActions.at(static_cast<std::size_t>(action));
}

/// The steps of one GPU that are not in the plan yet.
struct Work {
    GpuInventory model;           ///< the GPU after the steps that are in the plan
    std::vector<Step> changes{};  ///< Set and Rename, added to the plan together
    std::vector<Step> creates{}, resizes{}, destroys{};
    /// Numbers that new VFs must have, by request or because of a name such as "gpu0-vf3".
    std::set<std::uint32_t> reserved_numbers{};
    /// For each new VF, by name: the name of the previous new VF in the document; empty if none.
    std::map<std::string, std::string> names_before{};
    std::string last_new{};             ///< name of the last new VF so far
    std::set<std::uint32_t> matched{};  ///< numbers of current VFs that the document describes
    std::uint32_t vf_limit = 0;         ///< greatest VF number that the plan may use

    /// Free VRAM of the model at this point of the plan.
    [[nodiscard]] std::uint64_t vram_free() const {
        std::uint64_t used = 0;
        for (const InventoryVf& vf : model.vfs) used += vf.spec.resources.vram_bytes;
        return used < model.vram_bytes ? model.vram_bytes - used : 0;
    }
    [[nodiscard]] bool has_number(std::uint32_t number) const {
        return std::ranges::find(model.vfs, number, &InventoryVf::vf) != model.vfs.end();
    }
    /// The number of the model's VF with this name; 0 if none.
    [[nodiscard]] std::uint32_t number_of(const std::string& name) const {
        const auto at = std::ranges::find_if(
            model.vfs, [&name](const InventoryVf& vf) { return vf.spec.name == name; });
        return at == model.vfs.end() ? 0 : at->vf;
    }
    /// A free number for the new VF `name`; 0 if none. Tries the numbers after the number of the
    /// previous new VF first, so that the numbers have the order of the document. An export, which
    /// lists VFs by number, then has this order, too. Returns a number in use only if there is no
    /// other, and no Destroy will free another.
    [[nodiscard]] std::uint32_t free_number_for(const std::string& name) const {
        const std::uint32_t before = number_of(names_before.at(name));
        std::uint32_t second_choice = 0;
        for (std::uint32_t i = 0; i < vf_limit; ++i) {
            const std::uint32_t number = (before + i) % vf_limit + 1;
            if (has_number(number) || reserved_numbers.contains(number)) continue;
            if (!model.used_numbers.contains(number)) return number;
            if (second_choice == 0) second_choice = number;
        }
        return destroys.empty() ? second_choice : 0;
    }
};

/// True if admit() accepts the VFs of the model together.
bool can_be_scheduled(const GpuInventory& gpu) {
    std::vector<VfSpec> all;
    for (const InventoryVf& vf : gpu.vfs) all.push_back(vf.spec);
    return admit(gpu, gpu.settings, all).has_value();
}

/// "VRAM, compute units": the differences, all of which require a restart of the VF.
std::string resource_differences(const VfResources& from, const VfResources& to) {
    std::vector<std::string_view> what;
    if (from.vram_bytes != to.vram_bytes) what.emplace_back("VRAM");
    if (from.cu_mask != to.cu_mask) what.emplace_back("compute units");
    if (from.doorbell_pages != to.doorbell_pages) what.emplace_back("doorbell pages");
    if (from.security != to.security) what.emplace_back("security");
    return fmt::format("{}", fmt::join(what, ", "));
}

/// The existing VF that `desired` describes; null if none. A desired VF with a UUID is matched only
/// by its UUID.
const InventoryVf* find_existing(const GpuInventory& gpu, const DesiredVf& desired) {
    const auto find = [&gpu](const auto& matches) -> const InventoryVf* {
        const auto at = std::find_if(gpu.vfs.begin(), gpu.vfs.end(),
                                     [&](const InventoryVf& vf) { return matches(vf.spec); });
        return at == gpu.vfs.end() ? nullptr : &*at;
    };
    const VfSpec& known = desired.spec;
    if (known.uuid != Uuid{}) return find([&](const VfSpec& vf) { return vf.uuid == known.uuid; });
    const InventoryVf* by_name = find([&](const VfSpec& vf) { return vf.name == known.name; });
    if (by_name != nullptr || desired.was.empty()) return by_name;
    return find([&](const VfSpec& vf) { return vf.name == desired.was; });
}

/// Returns `now` with the settings and the profile name of `desired`. If only the profile name
/// differs, returns `now` unchanged, unless `desired` has a UUID: then `desired` comes from an
/// ApplyIntent, and the VF is restored exactly.
VfSpec with_settings(const VfSpec& now, const VfSpec& desired) {
    VfSpec after = now;
    apply(settings_of(desired), after);
    const bool is_exact = desired.uuid != Uuid{};
    VfSpec same_profile = after;
    same_profile.profile = now.profile;
    return is_exact || desired.resources != now.resources || same_profile != now ? after : now;
}

/// The reason of a Set step: says when the settings take effect.
std::string when_set(const GpuInventory& gpu) {
    return gpu.abilities.has_run_tables ? "takes effect with the next run table"
                                        : "the driver gets the new values at once";
}

/// Makes one plan: call add() for each GPU, then plan() once.
class Planner {
public:
    explicit Planner(const Surroundings& around) : around_(around) {}

    Result<> add(const DesiredGpu& desired, const GpuInventory& gpu);
    Result<ChangePlan> plan();

private:
    [[nodiscard]] Result<std::uint32_t> reserved_number(const std::string& name,
                                                        const GpuInventory& gpu) const;
    Result<> check_name(const std::string& name) const;
    Result<> record_name(const std::string& name, const std::string& gpu, bool is_unchanged);
    Result<> add_desired_vf(Work& work, const DesiredVf& desired);
    void add_existing_vf(Work& work, const InventoryVf& vf, const VfSpec& desired);
    Result<> add_new_vf(Work& work, const DesiredVf& desired);
    static Result<> destroy_others(Work& work);
    bool advance();
    bool make_enable(Work& work);
    bool make_changes(Work& work);
    bool make_create(Work& work);
    bool make_resize(Work& work);
    bool make_destroy(Work& work);
    [[nodiscard]] std::string waiting_step() const;
    void add_step(Work& work, const Step& step);

    const Surroundings& around_;
    std::vector<Work> works_;
    /// The use of a name by a desired VF.
    struct DesiredName {
        std::string gpu;            ///< the GPU of the VF
        bool is_unchanged = false;  ///< true if the current VF has the name already
    };
    std::map<std::string, DesiredName> desired_names_;
    std::multiset<std::string> names_;  ///< names of all VFs of the models
    std::vector<Step> kept_, steps_;    ///< Keep steps; other steps in the order of the plan
};

/// The VF number in a name such as "gpu0-vf3"; 0 for other names. NameTaken if the name begins with
/// the id of a GPU and "-vf", but is not the default name of a VF of `gpu`.
Result<std::uint32_t> Planner::reserved_number(const std::string& name,
                                               const GpuInventory& gpu) const {
    for (const std::string& id : around_.gpus) {
        const std::string prefix = id + "-vf";
        if (!name.starts_with(prefix)) continue;
        const std::string_view digits = std::string_view(name).substr(prefix.size());
        const std::uint32_t number = text::number_in<std::uint32_t>(digits).value_or(0);
        if (id == gpu.id && number > 0 && number <= gpu.total_vfs &&
            digits == std::to_string(number))
            return number;
        return fail(ErrorId::NameTaken,
                    fmt::format("'{}' is reserved for VFs without a name", name));
    }
    return std::uint32_t{0};
}

Result<> Planner::check_name(const std::string& name) const {
    if (std::find(around_.gpus.begin(), around_.gpus.end(), name) != around_.gpus.end())
        return fail(ErrorId::NameTaken, fmt::format("'{}' is a GPU", name));
    if (const auto other = around_.names.find(name); other != around_.names.end())
        return fail(ErrorId::NameTaken,
                    fmt::format("'{}' is the name of {}, which this configuration does not mention",
                                name, other->second));
    return {};
}

/// Records the name of a desired VF. BadConfiguration if another desired VF has the same name,
/// unless both current VFs have the name already, which may happen after an absent GPU has
/// returned.
Result<> Planner::record_name(const std::string& name, const std::string& gpu, bool is_unchanged) {
    const auto [at, is_new] = desired_names_.try_emplace(name, DesiredName{gpu, is_unchanged});
    if (is_new || (is_unchanged && at->second.is_unchanged)) return {};
    return fail(
        ErrorId::BadConfiguration,
        fmt::format("'{}' is the name of two VFs, of {} and of {}", name, at->second.gpu, gpu));
}

/// Adds a Rename, a Set and a Resize as needed, or else a Keep. All these steps have the current
/// spec as `from`, and no two of them change the same member, so their order does not matter.
void Planner::add_existing_vf(Work& work, const InventoryVf& vf, const VfSpec& desired) {
    const VfSpec& now = vf.spec;
    const Step step{.gpu = work.model.id, .vf = vf.vf, .from = now, .condition = vf.condition};
    const auto put = [&step](std::vector<Step>& to, Action action, std::string why) -> Step& {
        Step one = step;
        one.action = action;
        one.to = one.from;
        one.why = std::move(why);
        return to.emplace_back(std::move(one));
    };
    const auto need = [&work, &vf](Step& to, const VfSpec& before, const VfSpec& after) {
        set_needs(to, work.model, need_of(work.model.abilities, differences(before, after)));
        if (to.needs == Needs::VfIdle) to.in_use = use_of(vf);
    };
    bool is_same = true;
    if (desired.name != now.name) {
        put(work.changes, Action::Rename, "the VF has its former name").to->name = desired.name;
        is_same = false;
    }
    if (VfSpec after = with_settings(now, desired); after != now) {
        Step& set = put(work.changes, Action::Set, when_set(work.model));
        need(set, now, after);
        set.contract = contract_words(work.model.abilities, after);
        set.to = std::move(after);
        is_same = false;
    }
    if (desired.resources != now.resources) {
        Step& resize = put(work.resizes, Action::Resize,
                           fmt::format("{} can only change while its driver is unloaded",
                                       resource_differences(now.resources, desired.resources)));
        resize.to->resources = desired.resources;
        need(resize, now, *resize.to);
        is_same = false;
    }
    if (is_same)
        put(kept_, Action::Keep,
            vf.condition.empty()
                ? "it matches the configuration"
                : "its definition matches the configuration, but the VF is not in service");
}

Result<> Planner::add_new_vf(Work& work, const DesiredVf& desired) {
    TRY(const std::uint32_t reserved, reserved_number(desired.spec.name, work.model));
    const std::uint32_t number = desired.vf > 0 ? desired.vf : reserved;
    if (number > 0) work.reserved_numbers.insert(number);
    Step create{.action = Action::Create,
                .gpu = work.model.id,
                .vf = number,
                .to = desired.spec,
                .contract = contract_words(work.model.abilities, desired.spec),
                .why = "no VF has this name"};
    if (!desired.owner.name.empty()) create.owner = desired.owner;
    work.creates.push_back(std::move(create));
    return {};
}

/// Adds the work for a VF of the document. `desired` has normalised resources.
Result<> Planner::add_desired_vf(Work& work, const DesiredVf& desired) {
    const GpuInventory& gpu = work.model;
    const VfSpec& spec = desired.spec;
    const InventoryVf* existing = find_existing(gpu, desired);
    const bool is_unchanged = existing != nullptr && existing->spec.name == spec.name;
    TRY_VOID(record_name(spec.name, gpu.id, is_unchanged));
    if (!is_unchanged) TRY_VOID(check_name(spec.name));
    if (existing == nullptr) {
        work.names_before[spec.name] = std::exchange(work.last_new, spec.name);
        return add_new_vf(work, desired);
    }
    if (!is_unchanged) {
        TRY(const std::uint32_t number, reserved_number(spec.name, gpu));
        if (number > 0 && number != existing->vf)
            return fail(ErrorId::NameTaken,
                        fmt::format("'{}' is reserved for VF {} of {}", spec.name, number, gpu.id));
    }
    work.matched.insert(existing->vf);
    add_existing_vf(work, *existing, spec);
    return {};
}

/// Adds a Destroy for each current VF that the document does not describe. NameTaken if a new VF
/// must have the number of a VF that stays.
Result<> Planner::destroy_others(Work& work) {
    for (const InventoryVf& vf : work.model.vfs) {
        const bool is_matched = work.matched.contains(vf.vf);
        if (is_matched && work.reserved_numbers.contains(vf.vf))
            return fail(ErrorId::NameTaken,
                        fmt::format("'{}-vf{}' is reserved for that VF, which has the name '{}'",
                                    work.model.id, vf.vf, vf.spec.name));
        if (is_matched) continue;
        work.destroys.push_back({.action = Action::Destroy,
                                 .gpu = work.model.id,
                                 .vf = vf.vf,
                                 .from = vf.spec,
                                 .owner = vf.owner,
                                 .in_use = use_of(vf),
                                 .why = "the configuration does not name it"});
    }
    return {};
}

Result<> Planner::add(const DesiredGpu& desired, const GpuInventory& gpu) {
    Work work{.model = gpu};
    GpuSettings settings = gpu.settings;
    apply(desired.scheduler, settings);
    TRY_VOID(check_settings(gpu, gpu.settings, settings));
    if (settings != gpu.settings) {
        Step& set = work.changes.emplace_back(Step{.action = Action::Set,
                                                   .gpu = gpu.id,
                                                   .gpu_from = gpu.settings,
                                                   .gpu_to = settings,
                                                   .why = when_set(gpu)});
        set_needs(set, gpu, need_of(gpu.abilities, differences(gpu.settings, settings)));
    }
    std::vector<VfSpec> all;
    for (DesiredVf vf : desired.vfs) {
        vf.spec.resources = normalised(vf.spec.resources, gpu);
        all.push_back(vf.spec);
        TRY_VOID(add_desired_vf(work, vf));
    }
    TRY_VOID(check_capacity(gpu, settings, all));
    TRY(work.vf_limit, vf_limit(gpu, work.matched, work.creates));
    for (const InventoryVf& vf : gpu.vfs) names_.insert(vf.spec.name);
    TRY_VOID(destroy_others(work));
    works_.push_back(std::move(work));
    return {};
}

void Planner::add_step(Work& work, const Step& step) {
    if (step.from) names_.extract(step.from->name);
    if (step.to) names_.insert(step.to->name);
    perform(step, work.model);
    steps_.push_back(step);
}

/// Adds the Enable step of a GPU, if one is required. It is the first step of its GPU, because an
/// Enable requires idle VFs and empties the VRAM of all VFs.
bool Planner::make_enable(Work& work) {
    if (!needs_enable(work.model, work.vf_limit)) return false;
    add_step(work, enable_step(work.model, work.vf_limit));
    return true;
}

/// Adds all Set and Rename steps of a GPU together, because new weights may fit only with each
/// other, and VFs may swap names. False if the schedule or the names would not be valid.
bool Planner::make_changes(Work& work) {
    if (work.changes.empty()) return false;
    GpuInventory after = work.model;
    std::multiset<std::string> names = names_;
    for (const Step& step : work.changes) perform(step, after);
    for (const Step& step : work.changes)
        if (step.action == Action::Rename) names.extract(step.from->name);
    for (const Step& step : work.changes) {
        if (step.action != Action::Rename) continue;
        if (names.contains(step.to->name)) return false;
        names.insert(step.to->name);
    }
    if (!can_be_scheduled(after)) return false;
    for (const Step& step : work.changes) {
        perform(step, work.model);
        steps_.push_back(step);
    }
    names_ = std::move(names);
    work.changes.clear();
    return true;
}

/// Adds the first Create that fits. The other Create steps wait for later rounds.
bool Planner::make_create(Work& work) {
    for (auto create = work.creates.begin(); create != work.creates.end(); ++create) {
        Step step = *create;
        if (step.to->resources.vram_bytes > work.vram_free() || names_.contains(step.to->name))
            continue;
        if (step.vf == 0) step.vf = work.free_number_for(step.to->name);
        if (step.vf == 0 || work.has_number(step.vf)) continue;
        const Need need = need_of(work.model.abilities, differences(VfSpec{}, *step.to));
        // A VF that does not exist yet is idle.
        if (need.needs != Needs::VfIdle) set_needs(step, work.model, need);
        GpuInventory after = work.model;
        perform(step, after);
        if (!can_be_scheduled(after)) continue;
        work.creates.erase(create);
        add_step(work, step);
        return true;
    }
    return false;
}

/// Adds the first Resize that fits. Tries shrinking VFs first, because they make room for growing
/// VFs. Each growing VF fits in the end, because check_capacity() has checked the sum of the final
/// sizes.
bool Planner::make_resize(Work& work) {
    std::stable_partition(work.resizes.begin(), work.resizes.end(), [](const Step& step) {
        return step.to->resources.vram_bytes <= step.from->resources.vram_bytes;
    });
    for (auto resize = work.resizes.begin(); resize != work.resizes.end(); ++resize) {
        const std::uint64_t has = resize->from->resources.vram_bytes;
        if (resize->to->resources.vram_bytes > has + work.vram_free()) continue;
        const Step step = *resize;
        work.resizes.erase(resize);
        perform(step, work.model);
        steps_.push_back(step);
        return true;
    }
    return false;
}

/// Describes the first step, other than a Destroy, that still waits; empty if none does.
std::string Planner::waiting_step() const {
    for (const Work& work : works_) {
        if (!work.creates.empty()) return fmt::format("'{}'", work.creates.front().to->name);
        if (!work.resizes.empty()) return fmt::format("'{}'", work.resizes.front().to->name);
        if (!work.changes.empty()) return fmt::format("the settings of {}", work.model.id);
    }
    return "";
}

/// Adds the first Destroy. advance() calls make_destroy() last, so each remaining step of another
/// kind lacks VRAM, a number, a name or time in the schedule.
bool Planner::make_destroy(Work& work) {
    if (work.destroys.empty()) return false;
    Step step = work.destroys.front();
    work.destroys.erase(work.destroys.begin());
    if (const std::string waiting = waiting_step(); !waiting.empty())
        step.why += fmt::format("; makes room for {}", waiting);
    add_step(work, step);
    return true;
}

/// One round: adds the first possible kind of step. Tries each kind on all GPUs before the next
/// kind, so that no VF loses its VRAM while a step without loss is possible on another GPU. False
/// if no step is possible.
bool Planner::advance() {
    using Make = bool (Planner::*)(Work&);
    constexpr std::array<Make, 5> kInOrder{&Planner::make_enable, &Planner::make_changes,
                                           &Planner::make_create, &Planner::make_resize,
                                           &Planner::make_destroy};
    for (const Make make : kInOrder)
        for (Work& work : works_)
            if ((this->*make)(work)) return true;
    return false;
}

/// The top of this file explains why the loop ends.
Result<ChangePlan> Planner::plan() {
    while (advance()) {
    }
    if (const std::string waiting = waiting_step(); !waiting.empty())
        return fail(ErrorId::NoSchedule,
                    fmt::format("no order of steps reaches {} with a valid schedule and enough "
                                "VRAM at every step; apply the configuration in two parts",
                                waiting));
    add_sizes(steps_);
    ChangePlan result{.label = "", .steps = std::move(kept_)};
    result.steps.insert(result.steps.end(), std::make_move_iterator(steps_.begin()),
                        std::make_move_iterator(steps_.end()));
    return result;
}

}  // namespace

std::string_view name_of(Action action) {
    return row_of(action).name;
}

std::string_view name_of(Disruption disruption) {
    return kDisruptions.at(static_cast<std::size_t>(disruption));
}

std::optional<Disruption> disruption_named(std::string_view name) {
    const auto at = std::ranges::find(kDisruptions, name);
    if (at == kDisruptions.end()) return {};
    return static_cast<Disruption>(at - kDisruptions.begin());
}

Disruption disruption_of(const Step& step) {
    if (step.vf_count && step.vf_count->from == 0) return Disruption::None;
    return row_of(step.action).disruption;
}

bool ChangePlan::is_empty() const {
    return std::all_of(steps.begin(), steps.end(),
                       [](const Step& step) { return step.action == Action::Keep; });
}

Disruption ChangePlan::disruption() const {
    Disruption worst = Disruption::None;
    for (const Step& step : steps) worst = std::max(worst, disruption_of(step));
    return worst;
}

std::string target_of(const Step& step) {
    return step.vf == 0 ? step.gpu : fmt::format("{}/vf{}", step.gpu, step.vf);
}

Step inverse_of(const Step& step) {
    Step inverse = step;
    std::swap(inverse.from, inverse.to);
    std::swap(inverse.gpu_from, inverse.gpu_to);
    if (inverse.vf_count) std::swap(inverse.vf_count->from, inverse.vf_count->to);
    if (step.action == Action::Create) inverse.action = Action::Destroy;
    if (step.action == Action::Destroy) inverse.action = Action::Create;
    return inverse;
}

void perform(const Step& step, GpuInventory& gpu) {
    if (step.gpu_to) gpu.settings = *step.gpu_to;
    if (step.vf_count) gpu.enabled_vfs = step.vf_count->to;
    if (step.vf == 0 || step.action == Action::Keep) return;
    const auto at = std::ranges::lower_bound(gpu.vfs, step.vf, {}, &InventoryVf::vf);
    if (step.action == Action::Create) {
        gpu.vfs.insert(
            at, InventoryVf{
                    .vf = step.vf, .spec = *step.to, .owner = step.owner.value_or(OwnerRecord{})});
        return;
    }
    if (at == gpu.vfs.end() || at->vf != step.vf) return;
    if (step.action == Action::Destroy) {
        gpu.vfs.erase(at);
        return;
    }
    VfSpec& vf = at->spec;
    if (step.action == Action::Rename) vf.name = step.to->name;
    if (step.action == Action::Resize) vf.resources = step.to->resources;
    if (step.action == Action::Set) apply(settings_of(*step.to), vf);
}

namespace {

/// The quanta for GpuRoom; empty unless the driver serves its functions in turn. quanta_of()
/// succeeds, because check_capacity() has admitted the settings.
std::vector<PlannedQuantum> planned_quanta(const GpuInventory& gpu, const DesiredGpu& desired) {
    std::vector<PlannedQuantum> planned;
    if (!gpu.abilities.pf_quantum_ms) return planned;
    GpuSettings settings = gpu.settings;
    apply(desired.scheduler, settings);
    std::vector<VfSpec> vfs;
    for (const DesiredVf& vf : desired.vfs) vfs.push_back(vf.spec);
    const auto quanta = quanta_of(gpu.abilities, settings, vfs);
    for (std::size_t i = 0; quanta && i < vfs.size(); ++i)
        planned.push_back({.name = vfs[i].name,
                           .quantum_us = std::uint64_t{quanta->vfs[i].quantum_ms} * 1000,
                           .worst_wait_us = quanta->vfs[i].worst_wait_us});
    return planned;
}

GpuRoom room_of(const GpuInventory& gpu, const DesiredGpu& desired) {
    GpuRoom room{.gpu = gpu.id,
                 .vram_bytes = gpu.vram_bytes,
                 .pf_vram_bytes = gpu.pf_vram_bytes,
                 .quanta = planned_quanta(gpu, desired)};
    if (gpu.abilities.can(Change::CuMask))
        room.cu_count = static_cast<std::uint32_t>(std::popcount(all_cus(gpu)));
    if (gpu.abilities.can(Change::DoorbellPages))
        room.doorbell_pages = static_cast<std::uint32_t>(gpu.abilities[Change::DoorbellPages].max);
    for (const DesiredVf& vf : desired.vfs) room.planned_vram_bytes += vf.spec.resources.vram_bytes;
    return room;
}

}  // namespace

Result<ChangePlan> make_change_plan(std::span<const DesiredGpu> desired,
                                    std::span<const GpuInventory> gpus,
                                    const Surroundings& around) {
    Planner planner(around);
    std::vector<GpuRoom> rooms;
    for (const DesiredGpu& one : desired) {
        const auto gpu = std::ranges::find(gpus, one.gpu, &GpuInventory::id);
        if (gpu == gpus.end())
            return fail(ErrorId::NoSuchGpu, fmt::format("there is no GPU '{}'", one.gpu));
        TRY_VOID(planner.add(one, *gpu));
        rooms.push_back(room_of(*gpu, one));
    }
    TRY(ChangePlan plan, planner.plan());
    plan.rooms = std::move(rooms);
    return plan;
}

}  // namespace vgpu::daemon
