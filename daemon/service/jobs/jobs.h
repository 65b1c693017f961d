// SPDX-License-Identifier: MIT
//
// Jobs: the list of jobs, and queries about configurations. Applies (ApplyRun) run one after the
// other; a recovery (ApplyRecovery) runs before them. A VfRun, one request for a VF, waits for no
// other job. Jobs belong to vgpud, so their callers may disconnect. Finished jobs stay readable for
// kKeepFor, but at most kKeepApplies applies and recoveries, and kKeepOfVfs VfRuns. Runs in the
// main loop, which calls step() in every iteration.
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

/// A job as D-Bus shows it. `progress`: 0..1, finished requests / all requests.
struct JobView {
    std::uint32_t id = 0;
    std::string kind;   ///< apply | recovery | kind_of(VfJob)
    std::string state;  ///< waiting | running | rolling-back | done | failed | cancelled
    double progress = 0;
    std::string step;
    std::optional<Error> error;
    std::string plan;  ///< in the format of Manager.Plan; empty until the plan is made
    bool can_cancel = true;
    std::optional<AgentReport> report;
};

/// A job was added, or ended with `result`.
struct JobEvent {
    std::uint32_t id = 0;
    std::string result;  ///< the job's last state; empty: the job was added
};

/// Runs one apply at a time, because a second one would plan from a half-changed state.
class Jobs final : public TimedPart {
public:
    static constexpr Nanoseconds kKeepFor = std::chrono::minutes(10);
    /// Limit of finished applies and recoveries that stay readable.
    static constexpr std::size_t kKeepApplies = 32;
    /// Limit of finished VfRuns that stay readable; 16 GPUs have 256 VFs.
    static constexpr std::size_t kKeepOfVfs = 256;
    /// Limit of waiting applies.
    static constexpr std::size_t kMaxWaiting = 8;
    /// Limit of jobs of one kind that are under way for one VF.
    static constexpr std::size_t kMaxOfKind = 4;

    /// Begins the recovery of an apply found in the state files, and locks its GPUs.
    Jobs(Manager& manager, const Clock& clock);

    // --- queries; `options` are the options of the D-Bus methods
    /// Makes the plan for `document`, as JSON of schema vgpu-plan-1. Fails as
    /// parse_configuration(), desired_gpus() and make_change_plan().
    void plan(const std::string& document, const Options& options, const Done<std::string>& done);
    /// Makes a document with exactly the current VFs.
    void export_document(const Options& options, const Done<std::string>& done);
    /// Makes a document with equal splits (profiles.h).
    void automatic_document(const Options& options, const Done<std::string>& done);

    // --- jobs
    /// Adds a job and returns its number. Options: label, force, dry_run, disruption. Busy if
    /// kMaxWaiting applies wait. If vgpud ends, the next vgpud recovers the running apply, and the
    /// waiting applies are lost.
    Result<std::uint32_t> apply(const std::string& document, const Options& options);
    /// Starts a job and returns its number, or the error if its request was refused at once. Busy
    /// if kMaxOfKind jobs of kind `job` are under way for `target`.
    Result<std::uint32_t> start(const VfRun::Services& services, VfJob job, const Target& target,
                                const Options& options);
    /// Cancels a job. An apply first ends its current request, then rolls back. WrongState if the
    /// job is over or cannot be cancelled.
    Result<> cancel(std::uint32_t id);
    /// Waiting, running and finished jobs, by number.
    [[nodiscard]] std::vector<JobView> list() const;

    void step() override;
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override;
    /// True if list() or take_changes() may return something new.
    [[nodiscard]] bool has_changes() const {
        return is_any_accepted_ || !changes_.empty() || active() != nullptr;
    }
    /// The changes since the last call, in order.
    std::vector<JobEvent> take_changes();

private:
    struct Job {
        std::uint32_t id = 0;
        std::string kind;
        std::unique_ptr<JobRun> run;
        Nanoseconds ended_at{0};
        std::optional<Target> vf;  ///< VF of a VfRun; none for other jobs
        bool is_begun = false;
        bool is_notified = false;  ///< true if the job's end was added to changes_
    };

    [[nodiscard]] Result<std::vector<std::string>> gpus_of(const Options& options) const;
    void write_document(const std::vector<std::string>& gpus, const Done<std::string>& done,
                        std::function<Configuration(const std::vector<GpuInventory>&)> write);
    [[nodiscard]] Job* active() const;
    void add(std::unique_ptr<Job> job);
    void recover(const ApplyIntent& intent);
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
