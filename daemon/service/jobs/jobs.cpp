// SPDX-License-Identifier: MIT
#include "daemon/service/jobs/jobs.h"

#include "daemon/service/config/profiles.h"
#include "daemon/service/jobs/apply_recovery.h"
#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace vgpu::daemon {

namespace {

constexpr const char* kDefaultLabel = "current";

constexpr std::string_view kApply = "apply", kRecovery = "recovery";

/// Names of the values of JobRun::State, in their order.
constexpr std::array<std::string_view, 5> kStates{"running", "rolling-back", "done", "failed",
                                                  "cancelled"};

struct PlanRequest {
    std::string label;
    std::vector<DesiredGpu> desired;
};

/// Reads the document and its label. Checks the whole document before a job is made.
Result<PlanRequest> plan_request_of(const std::string& document, const OptionReader& reader,
                                    const std::vector<std::string>& gpus) {
    TRY(const auto label, reader.text("label"));
    TRY(const Configuration configuration, parse_configuration(document));
    TRY(std::vector<DesiredGpu> desired, desired_gpus(configuration, label.value_or(""), gpus));
    return PlanRequest{.label = chosen_label(configuration, label.value_or("")),
                       .desired = std::move(desired)};
}

/// The option `disruption`: the worst disruption that the caller accepts; any if absent.
Result<Disruption> max_disruption(const OptionReader& reader) {
    TRY(const auto word, reader.text("disruption"));
    if (!word) return Disruption::VfLoss;
    if (const auto max = disruption_named(*word)) return *max;
    return fail(ErrorId::OutOfRange,
                fmt::format("option 'disruption' is '{}', not none, vf-restart or vf-loss",
                            word->substr(0, 40)));
}

std::vector<std::string> ids_of(const std::vector<DesiredGpu>& desired) {
    std::vector<std::string> ids;
    for (const DesiredGpu& gpu : desired) ids.push_back(gpu.gpu);
    return ids;
}

}  // namespace

Jobs::Jobs(Manager& manager, const Clock& clock) : manager_(manager), clock_(clock) {
    if (const auto apply = manager.store().apply()) recover(*apply);
}

void Jobs::add(std::unique_ptr<Job> job) {
    changes_.push_back({.id = job->id, .result = ""});
    jobs_.push_back(std::move(job));
}

void Jobs::recover(const ApplyIntent& intent) {
    auto job = std::make_unique<Job>();
    job->id = ++last_id_;
    job->kind = kRecovery;
    job->is_begun = true;
    job->run = std::make_unique<ApplyRecovery>(
        manager_, clock_, intent,
        fmt::format("job {} (recovery of apply '{}')", job->id, intent.label));
    add(std::move(job));
}

Result<std::vector<std::string>> Jobs::gpus_of(const Options& options) const {
    TRY(const auto gpu, OptionReader(options).text("gpu"));
    if (!gpu) return manager_.gpu_ids();
    TRY(const GpuHost* known, manager_.gpu_of(*gpu));
    return std::vector<std::string>{known->id()};
}

void Jobs::plan(const std::string& document, const Options& options,
                const Done<std::string>& done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 1> kKnown{"label"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY(const PlanRequest request, plan_request_of(document, reader, manager_.gpu_ids()));
        collect_inventories(manager_, ids_of(request.desired),
                            [this, request, done](const Result<std::vector<GpuInventory>>& found) {
                                if (!found) return done(tl::make_unexpected(found.error()));
                                const auto plan =
                                    plan_for(manager_, request.label, request.desired, *found);
                                if (!plan) return done(tl::make_unexpected(plan.error()));
                                done(encode_change_plan(*plan));
                            });
        return {};
    });
}

void Jobs::write_document(const std::vector<std::string>& gpus, const Done<std::string>& done,
                          std::function<Configuration(const std::vector<GpuInventory>&)> write) {
    collect_inventories(
        manager_, gpus,
        [done, write = std::move(write)](const Result<std::vector<GpuInventory>>& found) {
            if (!found) return done(tl::make_unexpected(found.error()));
            done(encode_configuration(write(*found)));
        });
}

void Jobs::export_document(const Options& options, const Done<std::string>& done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 2> kKnown{"gpu", "label"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY(const auto label, reader.text("label"));
        const std::string name = label.value_or(kDefaultLabel);
        if (!is_valid_label(name))
            return fail(ErrorId::InvalidName,
                        fmt::format("'{}' is not a valid label for a config", name.substr(0, 64)));
        TRY(const auto gpus, gpus_of(options));
        write_document(gpus, done, [name](const std::vector<GpuInventory>& found) {
            return current_configuration(found, name);
        });
        return {};
    });
}

void Jobs::automatic_document(const Options& options, const Done<std::string>& done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 1> kKnown{"gpu"};
        TRY_VOID(OptionReader(options).only(kKnown));
        TRY(const auto gpus, gpus_of(options));
        write_document(gpus, done, [](const std::vector<GpuInventory>& found) {
            return automatic_configuration(found);
        });
        return {};
    });
}

/// Adds a job. The work begins with the next step(), so that the caller knows the number first.
Result<std::uint32_t> Jobs::apply(const std::string& document, const Options& options) {
    constexpr std::array<std::string_view, 4> kKnown{"label", "force", "dry_run", "disruption"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const Disruption max, max_disruption(reader));
    TRY(const bool is_forced, reader.flag("force"));
    TRY(const bool is_dry_run, reader.flag("dry_run"));
    TRY(const PlanRequest request, plan_request_of(document, reader, manager_.gpu_ids()));
    const auto waiting =
        std::count_if(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job->is_begun; });
    if (static_cast<std::size_t>(waiting) >= kMaxWaiting)
        return fail(ErrorId::Busy,
                    fmt::format("{} jobs wait behind job {}", waiting, active()->id));
    auto job = std::make_unique<Job>();
    job->id = ++last_id_;
    job->kind = kApply;
    job->run = std::make_unique<ApplyRun>(
        manager_, clock_,
        ApplyOrder{.label = request.label,
                   .desired = request.desired,
                   .force = is_forced ? Force::Yes : Force::No,
                   .max = max,
                   .is_dry_run = is_dry_run,
                   .holder = fmt::format("job {} (apply '{}')", job->id, request.label)});
    add(std::move(job));
    return last_id_;
}

/// Limits the jobs of each kind for each VF, so that a caller who may start only one kind cannot
/// block the other kinds.
Result<std::uint32_t> Jobs::start(const VfRun::Services& services, VfJob kind, const Target& target,
                                  const Options& options) {
    const auto under_way = std::ranges::count_if(jobs_, [&](const auto& job) {
        return job->vf == target && job->kind == kind_of(kind) && !job->run->is_over();
    });
    if (static_cast<std::size_t>(under_way) >= kMaxOfKind)
        return fail(ErrorId::Busy, fmt::format("{}: {} jobs of kind {} are under way",
                                               path_of(target), under_way, kind_of(kind)));
    auto job = std::make_unique<Job>();
    job->kind = kind_of(kind);
    job->vf = target;
    job->is_begun = true;
    job->run = std::make_unique<VfRun>(services, kind, target, options);
    job->run->step();
    if (job->run->error()) return tl::make_unexpected(*job->run->error());
    job->id = ++last_id_;
    add(std::move(job));
    return last_id_;
}

Result<> Jobs::cancel(std::uint32_t id) {
    for (const auto& job : jobs_) {
        if (job->id != id) continue;
        if (job->run->is_over())
            return fail(ErrorId::WrongState,
                        fmt::format("job {} is over: it is {}", id, view_of(*job).state));
        if (!job->run->can_be_cancelled())
            return fail(ErrorId::WrongState,
                        fmt::format("job {} is a {}, which cannot be rolled back", id, job->kind));
        job->run->cancel();
        return {};
    }
    return fail(ErrorId::WrongState, fmt::format("job {} is over and forgotten", id));
}

/// The unfinished recovery, if any, else the oldest unfinished apply; null if there is neither.
Jobs::Job* Jobs::active() const {
    Job* oldest = nullptr;
    for (const auto& job : jobs_) {
        if (job->vf || job->run->is_over()) continue;
        if (job->kind == kRecovery) return job.get();
        if (oldest == nullptr) oldest = job.get();
    }
    return oldest;
}

/// Adds a recovery for each run that ended with work left.
void Jobs::recover_left_over() {
    std::vector<ApplyIntent> left;
    for (const auto& job : jobs_)
        if (auto intent = job->run->take_left_over()) left.push_back(*std::move(intent));
    for (const ApplyIntent& intent : left) recover(intent);
}

/// Loops, so that several jobs that fail at once end in one iteration of the main loop. A run ends
/// in its step(), or in an answer of a GPU's thread before this call. Its recovery is added at
/// once, before another job can lock the GPUs.
void Jobs::step() {
    recover_left_over();
    for (Job* job = active(); job != nullptr; job = active()) {
        job->is_begun = true;
        job->run->step();
        if (!job->run->is_over()) break;
        recover_left_over();
    }
    for (const auto& job : jobs_) {
        if (job->is_notified) continue;
        const bool was_accepted = job->run->is_accepted();
        if (job->vf) job->run->step();
        is_any_accepted_ |= job->run->is_accepted() != was_accepted;
        if (!job->run->is_over()) continue;
        job->is_notified = true;
        job->ended_at = clock_.now();
        changes_.push_back({.id = job->id, .result = view_of(*job).state});
    }
    forget_old();
}

/// Forgets old jobs, the oldest first. Keeps a job until its end is in changes_, so that listeners
/// learn of every end.
void Jobs::forget_old() {
    const Nanoseconds now = clock_.now();
    // [0]: applies and recoveries, [1]: VfRuns
    std::array<std::size_t, 2> over{};
    for (const auto& job : jobs_)
        if (job->is_notified) ++over.at(job->vf ? 1 : 0);
    constexpr std::array kKeep{kKeepApplies, kKeepOfVfs};
    std::erase_if(jobs_, [&](const auto& job) {
        const std::size_t which = job->vf ? 1 : 0;
        const bool is_old = job->is_notified &&
                            (over.at(which) > kKeep.at(which) || now - job->ended_at >= kKeepFor);
        if (is_old) --over.at(which);
        return is_old;
    });
}

std::optional<Nanoseconds> Jobs::next_step() const {
    const Nanoseconds now = clock_.now();
    // This time is for polls, deadlines and retries. A new snapshot wakes the main loop anyway.
    Nanoseconds first = Nanoseconds::max();
    if (const Job* job = active()) first = job->run->next_step(now);
    for (const auto& job : jobs_) {
        if (job->is_notified) first = std::min(first, job->ended_at + kKeepFor);
        if (job->vf && !job->is_notified) first = std::min(first, job->run->next_step(now));
    }
    return first == Nanoseconds::max() ? std::nullopt : std::optional(first);
}

std::vector<JobEvent> Jobs::take_changes() {
    is_any_accepted_ = false;
    return std::exchange(changes_, {});
}

JobView Jobs::view_of(const Job& job) {
    const JobRun& run = *job.run;
    const bool is_waiting = !(job.is_begun && run.is_accepted()) && !run.is_over();
    return {.id = job.id,
            .kind = std::string(job.kind),
            .state = std::string(is_waiting ? "waiting"
                                            : kStates.at(static_cast<std::size_t>(run.state()))),
            .progress = run.progress(),
            .step = run.step_text(),
            .error = run.error(),
            .plan = run.plan_text(),
            .can_cancel = run.can_be_cancelled(),
            .report = run.report()};
}

std::vector<JobView> Jobs::list() const {
    std::vector<JobView> all;
    for (const auto& job : jobs_) all.push_back(view_of(*job));
    return all;
}

}  // namespace vgpu::daemon
