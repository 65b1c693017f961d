// SPDX-License-Identifier: MIT
#include "daemon/service/jobs/apply_recovery.h"

#include "daemon/service/jobs/apply_run.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace vgpu::daemon {

ApplyRecovery::ApplyRecovery(Manager& manager, const Clock& clock, ApplyIntent intent,
                             std::string holder)
    : manager_(manager),
      clock_(clock),
      intent_(std::move(intent)),
      holder_(std::move(holder)),
      executor_(manager, clock) {
    step_text_ = "reading the current state";
    lock();
    manager_.emit(EventKind::ApplyResumed,
                  intent_.goes_forward()
                      ? fmt::format("{}: the apply was interrupted and continues", holder_)
                      : fmt::format("{}: the apply is being rolled back: {}", holder_,
                                    intent_.rollback_reason));
}

ApplyRecovery::~ApplyRecovery() {
    if (has_lock_) manager_.unlock();
}

JobRun::State ApplyRecovery::state() const {
    if (phase_ == Phase::Over) return ended_as_;
    return intent_.goes_forward() ? State::Running : State::RollingBack;
}

double ApplyRecovery::progress() const {
    if (phase_ == Phase::Over && ended_as_ == State::Done) return 1.0;
    return requests_.empty() ? 0.0
                             : static_cast<double>(next_) / static_cast<double>(requests_.size());
}

Nanoseconds ApplyRecovery::next_step(Nanoseconds now) const {
    return std::max(next_step_, now + kPollInterval);
}

void ApplyRecovery::step() {
    while (advance()) {
    }
}

bool ApplyRecovery::advance() {
    if (is_over() || is_asking_) return false;
    if (executor_.is_under_way()) {
        const auto end = executor_.take_end();
        if (end) end_step(end->result);
        return end.has_value();
    }
    if (clock_.now() < next_step_) return false;
    if (phase_ == Phase::Preparing) return prepare();
    if (phase_ == Phase::Executing) return begin_next();
    clear();
    return !is_asking_;
}

/// Waits if another job has locked the GPUs, which should not happen.
void ApplyRecovery::lock() {
    if (has_lock_) return;
    const auto locked = manager_.lock(holder_, gpus_of(intent_), names_of(intent_));
    has_lock_ = locked.has_value();
    if (!locked) wait(locked.error().cause);
}

bool ApplyRecovery::prepare() {
    lock();
    if (!has_lock_) return false;
    if (is_cancelled() && intent_.goes_forward()) {
        clear_cancel();
        roll_back({ErrorId::Cancelled, "it was cancelled"});
    }
    if (!is_direction_recorded_) {
        record_direction();
        return !is_asking_;
    }
    if (const std::string missing = find_missing_gpu(); !missing.empty()) {
        wait("waiting for " + missing);
        return false;
    }
    begin_inventories();
    return !is_asking_;
}

/// Makes the direction (forward or back) durable. Writes nothing if it is durable already.
void ApplyRecovery::record_direction() {
    is_asking_ = true;
    manager_.commit_apply(intent_, [this](const Result<>& committed) {
        is_asking_ = false;
        is_direction_recorded_ = committed.has_value();
        if (!committed) wait("waiting for the disk: " + committed.error().cause);
    });
}

std::string ApplyRecovery::find_missing_gpu() {
    for (const std::string& gpu : gpus_of(intent_)) {
        if (dropped_.contains(gpu)) continue;
        const GpuHost* host = manager_.find_gpu(gpu);
        if (host == nullptr) {
            drop(gpu, "vgpud no longer has this GPU");
            continue;
        }
        const auto seen = host->snapshot();
        const auto writable = manager_.store().writable(gpu);
        if (seen->gpu.state == GpuState::Ok && writable) continue;
        const std::string why = writable ? seen->gpu.message : writable.error().cause;
        if (!is_cancelled()) return fmt::format("{}: {}", gpu, why);
        drop(gpu, why);
    }
    return "";
}

void ApplyRecovery::drop(const std::string& gpu, std::string why) {
    dropped_.insert(gpu);
    conditions_.push_back(fmt::format("{}: {}", gpu, why));
}

std::vector<DesiredGpu> ApplyRecovery::goal() const {
    std::vector<DesiredGpu> gpus = intent_.goal();
    std::erase_if(gpus, [this](const DesiredGpu& gpu) { return dropped_.contains(gpu.gpu); });
    return gpus;
}

void ApplyRecovery::begin_inventories() {
    std::vector<std::string> gpus;
    for (const DesiredGpu& gpu : goal()) gpus.push_back(gpu.gpu);
    step_text_ = "reading the current state";
    is_asking_ = true;
    collect_inventories(manager_, gpus, [this](Result<std::vector<GpuInventory>> found) {
        is_asking_ = false;
        on_inventories(std::move(found));
    });
}

/// Makes the plan. If an inventory failed, such as after the loss of a PF core, waits and tries
/// again.
void ApplyRecovery::on_inventories(Result<std::vector<GpuInventory>> found) {
    if (!found) return wait(found.error().cause);
    if (waits_for_scrubs(*found)) return;
    auto plan = plan_for(manager_, intent_.label, goal(), *found);
    if (plan) return accept(*std::move(plan), *found);
    if (intent_.goes_forward()) return roll_back(plan.error());
    conditions_.push_back(plan.error().cause);
    phase_ = Phase::Clearing;
}

/// True if the plan must wait for scrubs, because it may need their VRAM. If a scrub does not end
/// in time, a recovery that goes forward rolls back, and a recovery that rolls back continues
/// without that VRAM.
bool ApplyRecovery::waits_for_scrubs(const std::vector<GpuInventory>& found) {
    const bool is_scrubbing =
        std::any_of(found.begin(), found.end(), [](const auto& gpu) { return gpu.is_scrubbing; });
    if (!is_scrubbing) {
        scrub_deadline_.reset();
        return false;
    }
    if (!scrub_deadline_) scrub_deadline_ = clock_.now() + StepExecutor::kTimeout;
    if (clock_.now() < *scrub_deadline_) {
        wait("waiting for scrubs of VFs", kScrubPollInterval);
        return true;
    }
    if (!intent_.goes_forward()) return false;
    roll_back({ErrorId::TimedOut, "VFs are still being scrubbed"});
    return true;
}

void ApplyRecovery::accept(ChangePlan plan, const std::vector<GpuInventory>& found) {
    plan_text_ = encode_change_plan(plan);
    if (intent_.goes_forward())
        if (const auto possible = check_forward(plan, found); !possible)
            return roll_back(possible.error());
    if (!intent_.goes_forward()) erase_steps_in_use(plan, found);
    requests_ = requests_of(plan);
    next_ = 0;
    phase_ = Phase::Executing;
}

/// Checks all steps before the first request, so that a recovery that cannot go forward disturbs
/// no user.
Result<> ApplyRecovery::check_forward(const ChangePlan& plan,
                                      const std::vector<GpuInventory>& found) const {
    for (const Step& step : plan.steps) {
        if (!step.in_use.empty() && !is_step_allowed(intent_, step, found))
            return fail(ErrorId::WrongState,
                        fmt::format("{}: {}; the use would end", describe(step), step.in_use));
        // The definition is as desired, but the VF could not be put into service.
        const bool has_failed = step.action == Action::Keep && !step.condition.empty();
        if (has_failed && is_vf_changed(intent_, step))
            return fail(ErrorId::WrongState,
                        fmt::format("{}: {}", target_of(step), step.condition));
    }
    return {};
}

void ApplyRecovery::erase_steps_in_use(ChangePlan& plan, const std::vector<GpuInventory>& found) {
    std::erase_if(plan.steps, [&](const Step& step) {
        if (step.in_use.empty() || is_step_allowed(intent_, step, found)) return false;
        conditions_.push_back(fmt::format("{}: {}", describe(step), step.in_use));
        return true;
    });
}

/// Begins the next request, or the next phase. A VF may come into use after check_forward(); then
/// the GPU's thread refuses the request.
bool ApplyRecovery::begin_next() {
    const bool rolls_back = is_cancelled() && intent_.goes_forward() && next_ < requests_.size();
    if (rolls_back) {
        phase_ = Phase::Preparing;
        return true;
    }
    if (next_ == requests_.size()) {
        phase_ = Phase::Clearing;
        return true;
    }
    const Request& request = requests_[next_];
    step_text_ = (intent_.goes_forward() ? "" : "rolling back: ") + describe(request);
    executor_.begin(request, intent_);
    return true;
}

void ApplyRecovery::end_step(const Result<>& result) {
    const Request& request = requests_[next_];
    if (result) {
        if (!intent_.goes_forward() && empties(request))
            emptied_.push_back(fmt::format("'{}'", request.front().to->name));
        ++next_;
        return;
    }
    const Error& error = result.error();
    if (is_temporary(error.id) && (!is_loss(error.id) || ++losses_ <= kMaxLosses)) {
        phase_ = Phase::Preparing;
        return wait(error.cause);
    }
    if (intent_.goes_forward())
        return roll_back({error.id, fmt::format("{}: {}", describe(request), error.cause)});
    conditions_.push_back(fmt::format("{}: {}", describe(request), error.cause));
    ++next_;
}

void ApplyRecovery::roll_back(Error error) {
    intent_.rollback_reason = error.cause;
    error_ = std::move(error);
    is_direction_recorded_ = false;
    scrub_deadline_.reset();
    losses_ = 0;
    requests_.clear();
    next_ = 0;
    phase_ = Phase::Preparing;
}

void ApplyRecovery::wait(std::string why, Nanoseconds time) {
    step_text_ = std::move(why);
    next_step_ = clock_.now() + time;
}

void ApplyRecovery::clear() {
    is_asking_ = true;
    manager_.commit_apply(std::nullopt, [this](const Result<>& committed) {
        is_asking_ = false;
        if (committed) return end();
        wait("waiting for the disk: " + committed.error().cause);
    });
}

void ApplyRecovery::end() {
    const std::string outcome = outcome_text();
    ended_as_ = State::Done;
    if (error_ || !conditions_.empty()) {
        const Error cause = error_.value_or(Error{ErrorId::WrongState, intent_.rollback_reason});
        ended_as_ = cause.id == ErrorId::Cancelled ? State::Cancelled : State::Failed;
        error_ = Error{cause.id, cause.cause.empty() ? outcome : cause.cause + "; " + outcome};
    }
    const bool is_complete = conditions_.empty();
    manager_.emit(!is_complete             ? EventKind::ApplyUnfinished
                  : intent_.goes_forward() ? EventKind::ApplyFinished
                                           : EventKind::ApplyRolledBack,
                  fmt::format("{}: {}", holder_, error_ ? error_->cause : outcome));
    step_text_ = ended_as_ == State::Done && intent_.goes_forward() ? "done" : "over";
    phase_ = Phase::Over;
    if (has_lock_) manager_.unlock();
    has_lock_ = false;
}

std::string ApplyRecovery::outcome_text() const {
    std::string text = "the configuration is in force";
    if (!intent_.goes_forward()) text = "everything is as before";
    if (!conditions_.empty())
        text = fmt::format(
            "not everything could be {} ({}); 'vgpuctl plan FILE' shows the remaining steps",
            intent_.goes_forward() ? "done" : "rolled back", fmt::join(conditions_, "; "));
    if (!emptied_.empty())
        text += fmt::format(", but the VRAM of {} is empty", fmt::join(emptied_, ", "));
    return text;
}

}  // namespace vgpu::daemon
