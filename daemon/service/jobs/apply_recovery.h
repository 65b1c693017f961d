// SPDX-License-Identifier: MIT
//
// ApplyRecovery: finishes or rolls back an apply that an earlier vgpud did not end (ApplyIntent in
// the state files), or that ApplyRun left unfinished because a GPU or the disk was lost. Plans
// again from the current state, because VFs may have got new users since the apply began:
//   1. goes forward, if all remaining steps can be done and no new user would lose a VF;
//   2. else rolls back, except steps by which a new user would lose a VF;
//   3. reports the remaining steps (event apply-unfinished, the job's error).
//
// The direction changes only from forward to back, and is durable. A failed request is tried again
// only if the disk refused, or the PF core was lost (at most kMaxLosses times). So a recovery ends,
// or waits harmlessly for the disk or for a GPU that is not in service. A cancel makes the recovery
// roll back. During the rollback, a cancel makes the recovery skip GPUs that are not in service.
// The recovery's GPUs are locked until it ends.
//
//   Preparing --> Executing --> Clearing --> Over
//       ^             | failed: roll back, once
//       +-------------+ lost: read the state again
//
// Runs in the main loop; step() never waits. Made by Jobs.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/jobs/step_executor.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon {

class ApplyRecovery final : public JobRun {
public:
    /// Delay before a missing GPU is checked again, or the disk is tried again.
    static constexpr Nanoseconds kRetryDelay = std::chrono::seconds(1);
    static constexpr Nanoseconds kScrubPollInterval = std::chrono::milliseconds(50);
    /// Limit of losses of a PF core during requests, in each direction.
    static constexpr int kMaxLosses = 2;

    /// `holder`: "job 1 (recovery of apply 'day')"
    ApplyRecovery(Manager& manager, const Clock& clock, ApplyIntent intent, std::string holder);
    ~ApplyRecovery() override;

    void step() override;
    /// Done: the recovery has finished the apply, or the rollback that an earlier run began. Failed
    /// or Cancelled: this recovery began the rollback, or steps remain.
    [[nodiscard]] State state() const override;
    [[nodiscard]] double progress() const override;
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const override;

private:
    enum class Phase { Preparing, Executing, Clearing, Over };

    bool advance();
    /// False if the recovery has to wait.
    bool prepare();
    void lock();
    void record_direction();
    /// Describes the first GPU for which the recovery waits; empty if none. Drops GPUs that vgpud
    /// no longer has and, after a cancel, GPUs that are not in service.
    [[nodiscard]] std::string find_missing_gpu();
    void drop(const std::string& gpu, std::string why);
    void begin_inventories();
    void on_inventories(Result<std::vector<GpuInventory>> found);
    bool waits_for_scrubs(const std::vector<GpuInventory>& found);
    void accept(ChangePlan plan, const std::vector<GpuInventory>& found);
    [[nodiscard]] Result<> check_forward(const ChangePlan& plan,
                                         const std::vector<GpuInventory>& found) const;
    void erase_steps_in_use(ChangePlan& plan, const std::vector<GpuInventory>& found);
    bool begin_next();
    void end_step(const Result<>& result);
    void roll_back(Error error);
    void wait(std::string why, Nanoseconds time = kRetryDelay);
    void clear();
    void end();
    [[nodiscard]] std::string outcome_text() const;
    [[nodiscard]] std::vector<DesiredGpu> goal() const;

    Manager& manager_;
    const Clock& clock_;
    ApplyIntent intent_;
    std::string holder_;
    StepExecutor executor_;
    Phase phase_ = Phase::Preparing;
    State ended_as_ = State::Failed;
    bool is_asking_ = false;  ///< true while a GPU's thread or the disk has yet to answer
    bool has_lock_ = false;   ///< true while this job holds the lock of Manager
    bool is_direction_recorded_ = false;  ///< true if the direction is durable
    Nanoseconds next_step_{0};
    std::optional<Nanoseconds> scrub_deadline_;  ///< end of the wait for scrubs; none: no scrub
                                                 ///< is under way
    int losses_ = 0;
    std::vector<Request> requests_;
    std::size_t next_ = 0;                 ///< index of the next request in requests_
    std::set<std::string> dropped_;        ///< GPUs that the recovery leaves out
    std::vector<std::string> emptied_;     ///< VFs whose VRAM the rollback scrubbed
    std::vector<std::string> conditions_;  ///< what could not be done or rolled back, and why
};

}  // namespace vgpu::daemon
