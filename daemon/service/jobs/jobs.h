// SPDX-License-Identifier: MIT
//
// Jobs: what takes longer than a call, and what can be asked about configurations. A job is an
// ApplyRun with a number, or an ApplyRecovery: of the apply that an earlier vgpud did not end, or
// that a run had to leave; that comes before all others. These go one after the other. Or it is a
// CallRun: a request of one VF that was begun as a job; these wait for nobody. A job
// belongs to vgpud, not to its caller, who may leave. Jobs that are over stay readable for
// kKeepFor, the newest kKeepMost of them. Runs in the main loop, which calls step() in every turn;
// the D-Bus layer shows list() and signals take_news().
#pragma once

#include "daemon/service/jobs/apply_run.h"
#include "daemon/service/jobs/call_run.h"
#include "daemon/service/jobs/job_run.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// What the D-Bus object shows; `progress` is 0..1 in acts, `step` words for people.
struct JobView {
    std::uint32_t id = 0;
    std::string kind;   ///< apply | recovery | that of a CallOrder
    std::string state;  ///< waiting | running | rolling-back | done | failed | cancelled
    double progress = 0;
    std::string step;
    std::optional<Error> error;
    std::string plan;  ///< as Manager.Plan writes it; empty until it is made
    std::optional<AgentReport> report;
};

/// A job came, or was over with `result` (its last state).
/// In the order in which it happened: a job comes before it is over.
struct JobNews {
    std::uint32_t id = 0;
    std::string result;  ///< empty: it came
};

/// One apply runs at a time: two configurations under way would plan against each other's halves.
class Jobs {
public:
    static constexpr Nanoseconds kKeepFor = std::chrono::minutes(10);
    static constexpr std::size_t kKeepMost = 32;
    static constexpr std::size_t kMostWaiting = 8;
    static constexpr std::size_t kMostCalls = 32;  ///< under way

    /// Begins the recovery of an apply that is found in the state files; its GPUs are held from
    /// here on.
    Jobs(Manager& manager, const Clock& clock);

    // --- questions; options are those of the D-Bus method
    /// A document of schema vgpu-plan-1. BadConfiguration, NoSuchLabel, NoVram, NoSchedule and so
    /// on if there is no way.
    void plan(const std::string& document, const Options& options, const Done<std::string>& done);
    /// The VFs there are as a configuration that wants exactly them.
    void export_document(const Options& options, const Done<std::string>& done);
    /// Fair splits (profiles.h).
    void automatic_document(const Options& options, const Done<std::string>& done);

    // --- jobs
    /// The number of the new job; the job itself may still fail.
    /// Options: label, force, dry_run, disruption. Busy if kMostWaiting wait already. Jobs that
    /// have not begun end with vgpud; the one that is under way is recovered by the next.
    Result<std::uint32_t> apply(const std::string& document, const Options& options);
    /// Begins a request as a job: its number, or what it was refused with at once. Busy if
    /// kMostCalls are under way.
    Result<std::uint32_t> start(CallOrder order);
    /// WrongState if it is over already, or cannot be taken back.
    /// Takes effect after the act under way; what was done is taken back.
    Result<> cancel(std::uint32_t id);
    /// Those that wait, the one that runs, those that are over and kept; by number.
    [[nodiscard]] std::vector<JobView> list() const;

    void step();
    /// When step() wants to be called if nothing else happens; nothing: it does not.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;
    /// Something that list() or take_news() tells may have changed.
    [[nodiscard]] bool has_news() const { return !news_.empty() || active() != nullptr; }
    std::vector<JobNews> take_news();

private:
    struct Job {
        std::uint32_t id = 0;
        std::string kind;
        std::unique_ptr<JobRun> run;
        Nanoseconds ended_at{0};
        bool is_call = false;
        bool is_begun = false;
        bool is_told = false;  ///< that it is over
    };

    [[nodiscard]] std::vector<std::string> gpu_ids() const;
    [[nodiscard]] Result<std::vector<std::string>> gpus_of(const Options& options) const;
    Result<> start_plan(const std::string& document, const Options& options,
                        const Done<std::string>& done);
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
    std::vector<JobNews> news_;
};

}  // namespace vgpu::daemon
