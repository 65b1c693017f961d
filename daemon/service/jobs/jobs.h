// SPDX-License-Identifier: MIT
//
// Jobs: the list of jobs, and the queries about configurations (plan, export). Applies (ApplyRun)
// run one after the other. A recovery (ApplyRecovery) runs before all waiting applies. A VfRun,
// which makes one request for a VF, waits for no other job. Jobs belong to vgpud, so their callers
// may disconnect. Finished jobs stay readable for kKeepFor, but at most the newest kKeepApplies
// applies and recoveries, and the newest kKeepOfVfs VfRuns. Runs in the main loop, which calls
// step() in every iteration.
#pragma once

#include "daemon/ports/timed_part.h"
#include "daemon/service/jobs/apply_run.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/jobs/vf_run.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// A job as D-Bus shows it (org.vgpu1.Job).
struct JobView {
    std::uint32_t id = 0;
    std::string kind;            ///< apply | recovery | kind_of(VfJob)
    std::string state;           ///< waiting | running | rolling-back | done | failed | cancelled
    double progress = 0;         ///< as JobRun::progress()
    std::string step;            ///< what the job does now, as text; may be empty
    std::optional<Error> error;  ///< as JobRun::error()
    std::string plan;            ///< JSON of schema vgpu-plan-1; empty until the plan is made
    bool can_cancel = true;      ///< false if Jobs::cancel() always refuses this kind of job
    std::optional<AgentReport> report;  ///< for jobs that ask an agent: its report, at the end
};

/// A job was added, or ended.
struct JobEvent {
    std::uint32_t id = 0;
    std::string result;  ///< the last state of a job that ended; empty: the job was added
};

/// Runs one apply at a time, because a second apply would plan from a half-changed state.
class Jobs final : public TimedPart {
public:
    static constexpr Nanoseconds kKeepFor = std::chrono::minutes(10);
    /// Limit of finished applies and recoveries that stay readable.
    static constexpr std::size_t kKeepApplies = 32;
    /// Limit of finished VfRuns that stay readable; 16 GPUs with 16 VFs each have 256 VFs.
    static constexpr std::size_t kKeepOfVfs = 256;
    /// Limit of waiting applies.
    static constexpr std::size_t kMaxWaiting = 8;
    /// Limit of jobs of one kind that are under way for one VF.
    static constexpr std::size_t kMaxOfKind = 4;

    /// If the state files have an apply, adds its recovery, which locks the GPUs of the apply.
    Jobs(Manager& manager, const Clock& clock);

    // --- queries; `options` are those of the D-Bus methods (docs/dbus-api.md)
    /// Makes the plan for `document`, as JSON of schema vgpu-plan-1. Fails for an invalid option,
    /// or as parse_configuration(), desired_gpus(), GpuModel::inventory() and make_change_plan().
    void plan(const std::string& document, const Options& options, const Done<std::string>& done);
    /// Makes a document with exactly the current VFs. Fails for an invalid option, with NoSuchGpu,
    /// or as GpuModel::inventory().
    void export_document(const Options& options, const Done<std::string>& done);
    /// Makes a document with equal splits (config/profiles.h). Fails as export_document().
    void automatic_document(const Options& options, const Done<std::string>& done);

    // --- jobs
    /// Adds an apply and returns the number of its job. Options: label, force, dry_run, disruption.
    /// Fails for an invalid document or option, or with Busy if kMaxWaiting applies wait. If vgpud
    /// ends, the next vgpud recovers the running apply; the waiting applies are lost.
    Result<std::uint32_t> apply(const std::string& document, const Options& options);
    /// Starts a job for one VF. Returns the number of the job or, if the request is refused at
    /// once, the error. Busy if kMaxOfKind jobs of kind `job` are under way for `target`.
    Result<std::uint32_t> start(const VfRun::Services& services, VfJob job, const Target& target,
                                const Options& options);
    /// Cancels a job. An apply first finishes its current request, then rolls back. WrongState if
    /// the job is over or cannot be cancelled.
    Result<> cancel(std::uint32_t id);
    /// Waiting, running and finished jobs, by number.
    [[nodiscard]] std::vector<JobView> list() const;

    void step() override;
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;
    /// True if list() or take_changes() may return something new.
    [[nodiscard]] bool has_changes() const {
        return is_any_accepted_ || !changes_.empty() || active() != nullptr;
    }
    /// The added and ended jobs since the last call, in order.
    std::vector<JobEvent> take_changes();

private:
    struct Job {
        std::uint32_t id = 0;
        std::string kind;
        std::unique_ptr<JobRun> run;
        Nanoseconds ended_at{0};
        std::optional<Target> vf;  ///< VF of a VfRun; none for other jobs
        bool is_begun = false;     ///< false while an apply waits for other jobs
        bool is_notified = false;  ///< true if the job's end was added to changes_
    };

    [[nodiscard]] Result<std::vector<std::string>> gpus_of(const Options& options) const;
    void write_document(const std::vector<std::string>& gpus, const Done<std::string>& done,
                        std::function<Configuration(const std::vector<GpuInventory>&)> write);
    [[nodiscard]] Job* active() const;
    void add(std::unique_ptr<Job> job);
    void recover(const ApplyIntent& intent);
    void recover_left_over();
    void forget_old();
    [[nodiscard]] static JobView view_of(const Job& job);

    Manager& manager_;
    const Clock& clock_;
    std::uint32_t last_id_ = 0;
    std::deque<std::unique_ptr<Job>> jobs_;  ///< by number
    std::vector<JobEvent> changes_;
    bool is_any_accepted_ = false;  ///< true if a VfRun was accepted since take_changes()
};

}  // namespace vgpu::daemon
