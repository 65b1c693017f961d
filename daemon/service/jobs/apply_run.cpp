// SPDX-License-Identifier: MIT
#include "daemon/service/jobs/apply_run.h"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <set>

namespace vgpu::daemon {

namespace {

/// The inventories received so far; shared by the callbacks of all GPUs.
struct PendingReplies {
    std::map<std::string, GpuInventory> found;
    std::optional<Error> error;
    std::size_t missing = 0;  ///< number of GPUs that have not answered
};

Result<std::vector<GpuInventory>> in_order(const std::vector<std::string>& gpus,
                                           const PendingReplies& pending) {
    if (pending.error) return tl::make_unexpected(*pending.error);
    std::vector<GpuInventory> all;
    for (const std::string& gpu : gpus) all.push_back(pending.found.at(gpu));
    return all;
}

}  // namespace

void collect_inventories(Manager& manager, const std::vector<std::string>& gpus,
                         const Done<std::vector<GpuInventory>>& done) {
    if (gpus.empty()) return done(std::vector<GpuInventory>{});
    auto pending = std::make_shared<PendingReplies>();
    pending->missing = gpus.size();
    for (const std::string& gpu : gpus)
        manager.find_gpu(gpu)->ask<GpuInventory>(
            [](GpuModel& model) { return model.inventory(); },
            [pending, gpus, gpu, done](Result<GpuInventory> inventory) {
                if (inventory)
                    pending->found[gpu] = *std::move(inventory);
                else if (!pending->error)
                    pending->error = inventory.error();
                if (--pending->missing == 0) done(in_order(gpus, *pending));
            });
}

/// Takes the names of VFs on other GPUs from the records, which include absent GPUs.
Result<ChangePlan> plan_for(Manager& manager, const std::string& label,
                            const std::vector<DesiredGpu>& desired,
                            const std::vector<GpuInventory>& gpus) {
    Surroundings around;
    const std::set<std::string> gpus_known = manager.known_gpus();
    around.gpus = {gpus_known.begin(), gpus_known.end()};
    for (const auto& [name, gpu_and_vf] : manager.store().names()) {
        const auto has_this_gpu = [&gpu = gpu_and_vf.first](const DesiredGpu& one) {
            return one.gpu == gpu;
        };
        if (std::none_of(desired.begin(), desired.end(), has_this_gpu))
            around.names[name] = path_of({gpu_and_vf.first, gpu_and_vf.second});
    }
    TRY(ChangePlan plan, make_change_plan(desired, gpus, around));
    plan.label = label;
    return plan;
}

ApplyRun::ApplyRun(Manager& manager, const Clock& clock, ApplyOrder order)
    : manager_(manager), clock_(clock), order_(std::move(order)), executor_(manager, clock) {
    step_text_ = "waiting";
}

ApplyRun::~ApplyRun() {
    if (has_lock_) manager_.unlock();
}

JobRun::State ApplyRun::state() const {
    if (phase_ == Phase::Over) return ended_as_;
    return phase_ == Phase::Undoing ? State::RollingBack : State::Running;
}

double ApplyRun::progress() const {
    if (phase_ == Phase::Over && ended_as_ == State::Done) return 1.0;
    return requests_.empty() ? 0.0
                             : static_cast<double>(next_) / static_cast<double>(requests_.size());
}

void ApplyRun::step() {
    while (advance()) {
    }
}

/// False if the run is over or must wait. Waits for a request under way even after a cancel,
/// because the device cannot stop the request.
bool ApplyRun::advance() {
    if (is_over() || is_asking_) return false;
    if (executor_.is_under_way()) {
        const auto end = executor_.take_end();
        if (end) end_step(*end);
        return end.has_value();
    }
    if (phase_ == Phase::Executing) return begin_next();
    if (phase_ == Phase::Undoing) return begin_undo();
    if (clock_.now() < inventories_at_) return false;
    begin_inventories();
    return !is_asking_;
}

/// Locks GPUs and names before it reads the inventories, so that the inventories stay valid.
void ApplyRun::begin_inventories() {
    std::vector<std::string> gpus, names;
    for (const DesiredGpu& gpu : order_.desired) {
        gpus.push_back(gpu.gpu);
        for (const DesiredVf& vf : gpu.vfs) names.push_back(vf.spec.name);
    }
    if (is_cancelled()) return abandon({ErrorId::Cancelled, "it was cancelled before it started"});
    if (!has_lock_) {
        if (const auto locked = manager_.lock(order_.holder, gpus, names); !locked)
            return abandon(locked.error());
        has_lock_ = true;
        inventories_deadline_ = clock_.now() + StepExecutor::kTimeout;
    }
    step_text_ = "reading the current state";
    is_asking_ = true;
    collect_inventories(manager_, gpus, [this](Result<std::vector<GpuInventory>> found) {
        is_asking_ = false;
        on_inventories(std::move(found));
    });
}

/// Makes the plan. Before that, an apply that is no dry run waits for running scrubs, because the
/// plan may need their VRAM.
void ApplyRun::on_inventories(Result<std::vector<GpuInventory>> gpus) {
    if (!gpus) return abandon(gpus.error());
    const bool is_scrubbing =
        std::any_of(gpus->begin(), gpus->end(), [](const auto& gpu) { return gpu.is_scrubbing; });
    if (is_scrubbing && !order_.is_dry_run) {
        if (clock_.now() >= *inventories_deadline_)
            return abandon({ErrorId::TimedOut, "VFs that were destroyed are still being scrubbed"});
        step_text_ = "waiting for scrubs of VFs";
        inventories_at_ = clock_.now() + kScrubPollInterval;
        return;
    }
    auto plan = plan_for(manager_, order_.label, order_.desired, *gpus);
    if (!plan) return abandon(plan.error());
    if (const auto accepted = accept(*std::move(plan), *gpus); !accepted) abandon(accepted.error());
}

/// Checks the whole plan before the first request, so that a plan that must be refused disturbs no
/// user.
Result<> ApplyRun::accept(const ChangePlan& plan, std::span<const GpuInventory> gpus) {
    plan_text_ = encode_change_plan(plan);
    requests_ = requests_of(plan);
    if (order_.is_dry_run || requests_.empty()) {
        end(State::Done);
        return {};
    }
    for (const Step& step : plan.steps)
        if (disruption_of(step) > order_.max)
            return fail(
                ErrorId::WrongState,
                fmt::format("{} now needs '{}', but at most '{}' was accepted; nothing was "
                            "done. Plan again",
                            describe(step), name_of(disruption_of(step)), name_of(order_.max)));
    for (const Step& step : plan.steps)
        if (!step.blocked.empty())
            return fail(ErrorId::VfsInUse,
                        fmt::format("{}: {}, but these are in use: {}; nothing was done",
                                    describe(step), step.why, step.blocked));
    for (const Step& step : plan.steps)
        if (!step.in_use.empty() && order_.force == Force::No)
            return fail(ErrorId::WrongState,
                        fmt::format("{}: {}; the use would end; nothing was done. End that use "
                                    "first, or apply with option 'force'",
                                    describe(step), step.in_use));
    intent_ = intent_of(plan, order_.force == Force::Yes, gpus);
    // Also locks the names of VFs that the plan destroys or renames, because a rollback needs them.
    manager_.lock_names(names_of(intent_));
    commit(intent_, [this](const Result<>& committed) {
        if (!committed) return abandon(committed.error());
        phase_ = Phase::Executing;
    });
    return {};
}

void ApplyRun::commit(const std::optional<ApplyIntent>& intent, const Done<>& then) {
    is_asking_ = true;
    manager_.commit_apply(intent, [this, then](const Result<>& committed) {
        is_asking_ = false;
        then(committed);
    });
}

/// A cancel takes effect only between requests, because half a request cannot be rolled back.
bool ApplyRun::begin_next() {
    if (is_cancelled()) {
        abandon({ErrorId::Cancelled,
                 fmt::format("it was cancelled after {} of {} steps", next_, requests_.size())});
        return true;
    }
    if (next_ == requests_.size()) {
        finish(State::Done);
        return true;
    }
    const Request& request = requests_[next_];
    step_text_ = describe(request);
    executor_.begin(request, intent_);
    return true;
}

/// Begins to roll back the latest request that is not yet rolled back. If there is none, ends the
/// run or, if a GPU or the disk was lost, leaves the rest to a recovery.
bool ApplyRun::begin_undo() {
    if (to_undo_.empty()) {
        if (may_be_recovered_) {
            leave_to_recovery();
        } else {
            error_->cause += "; " + outcome_text();
            finish(error_->id == ErrorId::Cancelled ? State::Cancelled : State::Failed);
        }
        return true;
    }
    const Request& request = to_undo_.back();
    step_text_ = "rolling back: " + describe(request);
    executor_.begin(request, intent_);
    return true;
}

void ApplyRun::end_step(const StepEnd& end) {
    if (phase_ == Phase::Undoing) return end_undo(end.result);
    const Request& request = requests_[next_];
    record_emptied_by_enable(request.front(), end.result);
    const bool is_resized =
        request.front().action == Action::Resize && end.ended == Ended::Afterwards;
    // Two kinds of failed requests are rolled back, too: a late request, because it may still
    // complete, and a resize that left its VF without resources, because the record may have the
    // new resources.
    if (end.result || end.ended == Ended::Late ||
        (is_resized && defined_if_absent(request.front()))) {
        Request inverse;
        for (auto step = request.rbegin(); step != request.rend(); ++step)
            inverse.push_back(inverse_of(*step));
        to_undo_.push_back(std::move(inverse));
    } else if (is_resized) {
        emptied_.push_back(fmt::format("'{}'", request.front().from->name));
    }
    if (end.result) {
        ++next_;
        return;
    }
    // The record may already have the new definition, which vgpud applies when the GPU returns. A
    // recovery must then roll the definition back.
    if (is_loss(end.result.error().id) && !is_setting(request)) {
        may_be_recovered_ = true;
        conditions_.push_back(fmt::format("{}: {}", describe(request), end.result.error().cause));
    }
    abandon(
        {end.result.error().id, fmt::format("step {} of {} ({}): {}", next_ + 1, requests_.size(),
                                            describe(request), end.result.error().cause)});
}

/// After a success, a loss, PfRefused or DriverBusy, the driver may have disabled VFs. Every other
/// error is a refusal before that, so all VFs still have the content of their VRAM.
void ApplyRun::record_emptied_by_enable(const Step& step, const Result<>& result) {
    const bool is_refused = !result && !is_loss(result.error().id) &&
                            result.error().id != ErrorId::PfRefused &&
                            result.error().id != ErrorId::DriverBusy;
    if (!step.vf_count || step.vf_count->from == 0 || is_refused) return;
    for (const DesiredGpu& gpu : intent_.before)
        for (const DesiredVf& vf : gpu.vfs)
            if (gpu.gpu == step.gpu) emptied_.push_back(fmt::format("'{}'", vf.spec.name));
}

void ApplyRun::end_undo(const Result<>& result) {
    const Request request = std::move(to_undo_.back());
    to_undo_.pop_back();
    if (result && empties(request))
        emptied_.push_back(fmt::format("'{}'", request.front().to->name));
    if (result) return;
    const Step& step = request.front();
    // not a failure: the VF had no resources before the apply, either
    if (step.action == Action::Resize && !step.condition.empty() &&
        defined_if_absent(step) == step.to->resources)
        return;
    conditions_.push_back(fmt::format("{}: {}", describe(request), result.error().cause));
    may_be_recovered_ = may_be_recovered_ || is_temporary(result.error().id);
}

std::optional<VfResources> ApplyRun::defined_if_absent(const Step& step) const {
    const auto seen = manager_.find_gpu(step.gpu)->snapshot();
    if (!seen->has_vf(step.vf) || seen->vf_state(step.vf) != VGPU_PF_VF_ABSENT) return {};
    return seen->vfs.at(step.vf).record.spec.resources;
}

/// Ends the run if nothing was done yet; else rolls back. Makes the decision to roll back durable
/// first, so that after a crash the next vgpud rolls back, too.
void ApplyRun::abandon(Error error) {
    error_ = std::move(error);
    if (phase_ == Phase::Inventory)
        return end(error_->id == ErrorId::Cancelled ? State::Cancelled : State::Failed);
    intent_.rollback_reason = error_->cause;
    commit(intent_, [this](const Result<>& committed) {
        phase_ = Phase::Undoing;
        if (committed) return;
        conditions_.push_back(committed.error().cause);
        leave_to_recovery();
    });
}

/// Removes the recorded intent first. If the disk refuses that, a recovery tries again.
void ApplyRun::finish(State state) {
    commit(std::nullopt, [this, state](const Result<>& committed) {
        if (!committed) left_over_ = intent_;
        end(state);
    });
}

/// Leaves the rest of the rollback to a recovery job.
void ApplyRun::leave_to_recovery() {
    left_over_ = intent_;
    error_->cause += "; " + outcome_text();
    end(error_->id == ErrorId::Cancelled ? State::Cancelled : State::Failed);
}

void ApplyRun::end(State state) {
    phase_ = Phase::Over;
    ended_as_ = state;
    step_text_ = state == State::Done ? "done" : "over";
    if (has_lock_) manager_.unlock();
    has_lock_ = false;
}

std::string ApplyRun::outcome_text() const {
    std::string text = "everything is as before";
    if (left_over_)
        text = fmt::format("not everything could be rolled back yet ({}); a recovery job continues",
                           fmt::join(conditions_, "; "));
    else if (!conditions_.empty())
        text = fmt::format(
            "not everything could be rolled back ({}); 'vgpuctl plan FILE' shows the remaining "
            "steps",
            fmt::join(conditions_, "; "));
    if (!emptied_.empty())
        text += fmt::format(", but the VRAM of {} is empty", fmt::join(emptied_, ", "));
    return text;
}

}  // namespace vgpu::daemon
