// SPDX-License-Identifier: MIT
#include "daemon/service/apply_run.h"

#include <fmt/format.h>
#include <algorithm>
#include <memory>

namespace vgpu::daemon {

namespace {

bool is_setting(const Step& step) {
    return step.action == Action::Set || step.action == Action::Rename;
}

/// Neighbours that are settings of one GPU belong together.
/// Settings of one GPU in one act are one durable record: at no moment is half of a new schedule in
/// force.
std::vector<std::vector<Step>> acts_of(const ChangePlan& plan) {
    std::vector<std::vector<Step>> acts;
    for (const Step& step : plan.steps) {
        if (step.action == Action::Keep) continue;
        const bool joins = !acts.empty() && is_setting(step) && is_setting(acts.back().back()) &&
                           acts.back().back().gpu == step.gpu;
        if (!joins) acts.emplace_back();
        acts.back().push_back(step);
    }
    return acts;
}

std::string words_for(const Step& step) {
    const VfDefinition* vf = step.from ? &*step.from : step.to ? &*step.to : nullptr;
    return vf == nullptr
               ? fmt::format("{} {}", name_of(step.action), target_of(step))
               : fmt::format("{} {} '{}'", name_of(step.action), target_of(step), vf->name);
}

std::string words_for(const std::vector<Step>& act) {
    if (act.size() == 1) return words_for(act.front());
    return fmt::format("{} and {} more settings of {}", words_for(act.front()), act.size() - 1,
                       act.front().gpu);
}

/// Set carries all that can be set, also what stays: the step says what is to be, not what changes.
Settings settings_of(const std::vector<Step>& act, Force force) {
    Settings settings{.force = force};
    for (const Step& step : act) {
        if (step.gpu_to)
            settings.gpu = {.quantum_us = step.gpu_to->quantum_us,
                            .max_gap_ms = step.gpu_to->max_gap_ms};
        if (!step.to) continue;
        VfChange& change = settings.vfs[step.vf];
        if (step.action == Action::Rename) change.name = step.to->name;
        if (step.action != Action::Set) continue;
        change.weight = step.to->weight;
        change.quantum_us = step.to->quantum_us;
        change.qos = change_to(step.to->qos);
        change.custody = change_to(step.to->custody);
        change.profile = step.to->profile;
    }
    return settings;
}

CreateRequest create_request(const Step& step) {
    const VfDefinition& vf = *step.to;
    CreateRequest request;
    request.name = vf.name;
    request.vram_bytes = vf.shape.vram_bytes;
    request.weight = vf.weight;
    request.quantum_us = vf.quantum_us;
    request.qos = vf.qos;
    request.custody = vf.custody;
    request.cu_mask = vf.shape.cu_mask;
    request.doorbell_pages = vf.shape.doorbell_pages;
    request.security = vf.shape.security;
    request.profile = vf.profile;
    request.vf = step.vf;
    // A VF that is made again to undo its end keeps its identity.
    if (vf.uuid != Uuid{}) request.uuid = vf.uuid;
    request.owner = step.owner.value_or(OwnerRecord{});
    return request;
}

/// Done in the GPU's thread; the generation of the VF before the act, where that matters.
/// Before a destroy or resize the generation is noted: its end is seen by the generation being
/// gone.
Result<std::uint32_t> carry_out(GpuModel& model, const std::vector<Step>& act, Force force) {
    const Step& step = act.front();
    if (is_setting(step)) {
        TRY_VOID(model.configure(settings_of(act, force)));
        return std::uint32_t{0};
    }
    if (step.action == Action::Create) return model.create(create_request(step));
    const std::uint32_t generation =
        model.has_vf(step.vf) ? model.view(step.vf).live.generation : 0;
    if (step.action == Action::Resize) {
        TRY_VOID(model.reshape(step.vf, step.to->shape, force));
    } else {
        TRY_VOID(model.destroy(step.vf, force));
    }
    return generation;
}

/// Inventories as they come in.
/// Shared by the answers of all GPUs; it lives until the last one.
struct Gathering {
    std::map<std::string, GpuInventory> found;
    std::optional<Error> error;
    std::size_t missing = 0;
};

Result<std::vector<GpuInventory>> in_order(const std::vector<std::string>& gpus,
                                           const Gathering& gathering) {
    if (gathering.error) return tl::make_unexpected(*gathering.error);
    std::vector<GpuInventory> all;
    for (const std::string& gpu : gpus) all.push_back(gathering.found.at(gpu));
    return all;
}

}  // namespace

void survey(Manager& manager, const std::vector<std::string>& gpus,
            const Done<std::vector<GpuInventory>>& done) {
    if (gpus.empty()) return done(std::vector<GpuInventory>{});
    auto gathering = std::make_shared<Gathering>();
    gathering->missing = gpus.size();
    for (const std::string& gpu : gpus)
        manager.find_gpu(gpu)->ask<GpuInventory>(
            [](GpuModel& model) { return model.inventory(); },
            [gathering, gpus, gpu, done](Result<GpuInventory> inventory) {
                if (inventory)
                    gathering->found[gpu] = *std::move(inventory);
                else if (!gathering->error)
                    gathering->error = inventory.error();
                if (--gathering->missing == 0) done(in_order(gpus, *gathering));
            });
}

/// Names of VFs on other GPUs are taken from the records, also of those that are not in service
/// now.
Result<ChangePlan> plan_for(Manager& manager, const std::string& label,
                            const std::vector<WantedGpu>& wanted,
                            const std::vector<GpuInventory>& gpus) {
    Surroundings around;
    for (const auto& gpu : manager.gpus()) {
        around.gpus.push_back(gpu->id());
        const bool is_meant = std::any_of(wanted.begin(), wanted.end(), [&](const WantedGpu& one) {
            return one.gpu == gpu->id();
        });
        if (is_meant) continue;
        for (const auto& [vf, record] : manager.store().gpu(gpu->id()).vfs)
            around.names[record.name] = fmt::format("{}/vf{}", gpu->id(), vf);
    }
    TRY(ChangePlan plan, make_change_plan(wanted, gpus, around));
    plan.label = label;
    return plan;
}

ApplyRun::ApplyRun(Manager& manager, const Clock& clock, ApplyOrder order)
    : manager_(manager), clock_(clock), order_(std::move(order)), step_text_("waiting") {}

ApplyRun::~ApplyRun() {
    if (is_holding_) manager_.let_go();
}

double ApplyRun::progress() const {
    if (state_ == State::Done) return 1.0;
    return acts_.empty() ? 0.0 : static_cast<double>(next_) / static_cast<double>(acts_.size());
}

void ApplyRun::step() {
    while (advance()) {
    }
}

/// False if something else has to happen first.
/// Awaited things first: an act is over when the device says so, not when it was asked for.
bool ApplyRun::advance() {
    if (is_over() || is_asking_) return false;
    if (awaited_) {
        const auto result = outcome();
        if (!result) return false;
        const bool is_late = clock_.now() >= awaited_->deadline;
        awaited_.reset();
        end_act(*result, is_late ? Ended::Late : Ended::Afterwards);
        return true;
    }
    if (state_ == State::Acting) return begin_next();
    if (state_ == State::Undoing) return begin_undo();
    if (clock_.now() < survey_at_) return false;
    begin_survey();
    return !is_asking_;
}

/// GPUs and names are held before the first look: what is seen must still be so when the plan is
/// carried out.
void ApplyRun::begin_survey() {
    std::vector<std::string> gpus, names;
    for (const WantedGpu& gpu : order_.wanted) {
        gpus.push_back(gpu.gpu);
        for (const WantedVf& vf : gpu.vfs) names.push_back(vf.definition.name);
    }
    if (is_cancelled_) return give_up({ErrorId::Cancelled, "it was cancelled before it began"});
    if (!is_holding_) {
        if (const auto held = manager_.hold(order_.holder, gpus, names); !held)
            return give_up(held.error());
        is_holding_ = true;
        survey_deadline_ = clock_.now() + kActTimeout;
    }
    step_text_ = "looking at what there is";
    is_asking_ = true;
    survey(manager_, gpus, [this](Result<std::vector<GpuInventory>> found) {
        is_asking_ = false;
        on_survey(std::move(found));
    });
}

/// Scrubs that are under way hold resources that the plan counts on.
void ApplyRun::on_survey(Result<std::vector<GpuInventory>> gpus) {
    if (!gpus) return give_up(gpus.error());
    const bool is_scrubbing =
        std::any_of(gpus->begin(), gpus->end(), [](const auto& gpu) { return gpu.is_scrubbing; });
    if (is_scrubbing && !order_.is_dry_run) {
        if (clock_.now() >= *survey_deadline_)
            return give_up({ErrorId::TimedOut, "VFs destroyed before are still being scrubbed"});
        step_text_ = "waiting for VFs that are being scrubbed";
        survey_at_ = clock_.now() + kSurveyAgain;
        return;
    }
    auto plan = plan_for(manager_, order_.label, order_.wanted, *gpus);
    if (!plan) return give_up(plan.error());
    if (const auto accepted = accept(*std::move(plan)); !accepted) give_up(accepted.error());
}

/// Uses are refused for the whole plan before its first act: a plan that stops in the middle for
/// want of force would disturb for nothing.
Result<> ApplyRun::accept(ChangePlan plan) {
    plan_ = std::move(plan);
    plan_text_ = encode_change_plan(plan_);
    if (order_.is_dry_run) {
        end(State::Done);
        return {};
    }
    for (const Step& step : plan_.steps)
        if (!step.in_use.empty() && order_.force == Force::No)
            return fail(ErrorId::WrongState,
                        fmt::format("{}: {}, and would lose it; nothing was done. End that use "
                                    "first, or apply with option 'force'",
                                    words_for(step), step.in_use));
    acts_ = acts_of(plan_);
    state_ = State::Acting;
    return {};
}

/// Cancelling takes effect between acts only: half an act cannot be taken back.
bool ApplyRun::begin_next() {
    if (is_cancelled_) {
        give_up({ErrorId::Cancelled,
                 fmt::format("it was cancelled after {} of {} steps", next_, acts_.size())});
        return true;
    }
    if (next_ == acts_.size()) {
        end(State::Done);
        return true;
    }
    const Act& act = acts_[next_];
    step_text_ = words_for(act);
    perform(act, order_.force);
    return !is_asking_;
}

bool ApplyRun::begin_undo() {
    if (to_undo_.empty()) {
        error_->cause += "; " + aftermath();
        end(error_->id == ErrorId::Cancelled ? State::Cancelled : State::Failed);
        return true;
    }
    const Act& act = to_undo_.back();
    step_text_ = "taking back: " + words_for(act);
    perform(act, order_.force);
    return !is_asking_;
}

void ApplyRun::perform(const Act& act, Force force) {
    is_asking_ = true;
    manager_.find_gpu(act.front().gpu)
        ->ask<std::uint32_t>([act, force](GpuModel& model) { return carry_out(model, act, force); },
                             [this, step = act.front()](Result<std::uint32_t> generation) {
                                 is_asking_ = false;
                                 on_answer(step, std::move(generation));
                             });
}

void ApplyRun::on_answer(const Step& step, Result<std::uint32_t> generation) {
    if (!generation) return end_act(tl::make_unexpected(generation.error()), Ended::AtOnce);
    if (step.action != Action::Resize && step.action != Action::Destroy)
        return end_act({}, Ended::AtOnce);
    awaited_ =
        Awaited{.step = step, .generation = *generation, .deadline = clock_.now() + kActTimeout};
}

/// How the act ended; nothing if it has not.
/// Looks at the snapshot that the GPU's thread publishes; nothing is asked.
std::optional<Result<>> ApplyRun::outcome() const {
    const Step& step = awaited_->step;
    const auto seen = manager_.find_gpu(step.gpu)->look();
    const bool is_there = seen->has_vf(step.vf);
    if (seen->gpu.state != GpuState::Ok)
        return fail(ErrorId::PfLost, fmt::format("{}: {}", step.gpu, seen->gpu.message));
    if (clock_.now() >= awaited_->deadline)
        return fail(
            ErrorId::TimedOut,
            fmt::format("{} is still being scrubbed after {} s", target_of(step),
                        std::chrono::duration_cast<std::chrono::seconds>(kActTimeout).count()));
    if (step.action == Action::Destroy) {
        if (is_there && seen->vfs.at(step.vf).live.generation == awaited_->generation) return {};
        return Result<>{};
    }
    const bool is_on_its_way = is_there && (seen->vf_state(step.vf) == VGPU_PF_VF_SCRUBBING ||
                                            seen->vfs.at(step.vf).record.next.has_value());
    if (is_on_its_way) return {};
    return outcome_of_resize(*seen);
}

/// The record has one shape or the other when `next` is gone: which one tells how it ended.
Result<> ApplyRun::outcome_of_resize(const GpuSnapshot& seen) const {
    const Step& step = awaited_->step;
    const std::string target = target_of(step);
    if (!seen.has_vf(step.vf) || seen.vf_state(step.vf) == VGPU_PF_VF_ABSENT)
        return fail(ErrorId::PfRefused,
                    fmt::format("{} could be given neither its new nor its old resources", target));
    if (shape_of(seen.vfs.at(step.vf).record) == step.to->shape) return {};
    return fail(ErrorId::PfRefused,
                fmt::format("the PF core would not give {} its new resources; it has its old ones",
                            target));
}

void ApplyRun::end_act(const Result<>& result, Ended ended) {
    if (state_ == State::Undoing) {
        const Act act = std::move(to_undo_.back());
        to_undo_.pop_back();
        if (!result)
            troubles_.push_back(fmt::format("{}: {}", words_for(act), result.error().cause));
        for (const Step& step : act)
            if (result && step.action != Action::Destroy && !is_setting(step))
                emptied_.push_back(fmt::format("'{}'", step.to->name));
        return;
    }
    const Act& act = acts_[next_];
    // An act that is merely late may still come to its end, so it is taken back as if it had.
    if (result || ended == Ended::Late) {
        Act inverse;
        for (auto step = act.rbegin(); step != act.rend(); ++step)
            inverse.push_back(inverse_of(*step));
        to_undo_.push_back(std::move(inverse));
    } else if (act.front().action == Action::Resize && ended == Ended::Afterwards) {
        emptied_.push_back(fmt::format("'{}'", act.front().from->name));
    }
    if (result) {
        ++next_;
        return;
    }
    give_up({result.error().id, fmt::format("step {} of {} ({}): {}", next_ + 1, acts_.size(),
                                            words_for(act), result.error().cause)});
}

/// Nothing was done while surveying; what was done while acting is taken back first.
void ApplyRun::give_up(Error error) {
    error_ = std::move(error);
    if (state_ == State::Acting) {
        state_ = State::Undoing;
        return;
    }
    end(error_->id == ErrorId::Cancelled ? State::Cancelled : State::Failed);
}

void ApplyRun::end(State state) {
    state_ = state;
    step_text_ = state == State::Done ? "done" : "over";
    if (is_holding_) manager_.let_go();
    is_holding_ = false;
}

/// What a run that failed has left.
std::string ApplyRun::aftermath() const {
    std::string text = troubles_.empty()
                           ? "everything is as it was before"
                           : fmt::format(
                                 "not everything could be taken back ({}); 'vgpuctl plan' "
                                 "shows what is left",
                                 fmt::join(troubles_, "; "));
    if (!emptied_.empty())
        text += fmt::format(", but the VRAM of {} is empty", fmt::join(emptied_, ", "));
    return text;
}

}  // namespace vgpu::daemon
