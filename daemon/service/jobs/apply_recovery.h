// SPDX-License-Identifier: MIT
//
// ApplyRecovery: finishes or rolls back an apply (ApplyIntent) that did not end: an earlier vgpud
// died during the apply, or ApplyRun lost a GPU or the disk. Plans again from the current state,
// because VFs may have got new users since the apply began:
//   1. goes forward, if no rollback has begun, all remaining steps can be done, and no new user
//      would lose a VF;
//   2. else rolls back, except steps by which a new user would lose a VF;
//   3. reports the steps that remain (event apply-unfinished, the job's error).
//
// The direction changes at most once, from forward to back, and is durable. After a failed request
// the recovery plans again only if the disk refused, or if the GPU was lost (is_loss(), at most
// kMaxLosses times). So a recovery ends, or waits for the disk or for a GPU that is not in service.
// A cancel makes a recovery that goes forward roll back. A cancel during the rollback makes the
// recovery leave out GPUs that are not in service. The recovery locks the GPUs of the apply until
// the recovery ends.
//
//   Preparing --> Executing --> Clearing --> Over
//       ^             | failed, cancelled: roll back, once
//       +-------------+ lost, disk refused: read the state again
//
// Clearing removes the intent from the state files. Runs in the main loop; step() never waits. Made
// by Jobs.
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
    /// Delay before the recovery tries again to use a missing GPU or the disk.
    static constexpr Nanoseconds kRetryDelay = std::chrono::seconds(1);
    /// Delay before vgpud checks again whether scrubs have ended.
    static constexpr Nanoseconds kScrubPollInterval = std::chrono::milliseconds(50);
    /// How often, in each direction, the recovery plans again after a GPU was lost during a
    /// request.
    static constexpr int kMaxLosses = 2;

    /// `holder`: for messages and Manager::lock(): "job 1 (recovery of apply 'day')".
    ApplyRecovery(Manager& manager, const Clock& clock, ApplyIntent intent, std::string holder);
    ~ApplyRecovery() override;

    void step() override;
    /// Done: the apply is finished or, if an earlier run began the rollback, rolled back. Failed or
    /// Cancelled: this recovery began the rollback, or steps remain.
    [[nodiscard]] State state() const override;
    [[nodiscard]] double progress() const override;
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const override;

private:
    enum class Phase { Preparing, Executing, Clearing, Over };

    bool advance();
    /// False if the recovery must wait.
    bool prepare();
    void lock();
    void record_direction();
    /// Describes the first GPU for which the recovery waits; empty if none. Drops GPUs that vgpud
    /// no longer has and, after a cancel, GPUs that are not in service or whose state is read-only.
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
    bool is_direction_recorded_ = false;         ///< true if the direction is durable
    Nanoseconds next_step_{0};                   ///< earliest time to continue
    std::optional<Nanoseconds> scrub_deadline_;  ///< end of the wait for scrubs; none: no scrub
                                                 ///< is under way
    int losses_ = 0;  ///< losses of a GPU during requests in the current direction
    std::vector<Request> requests_;
    std::size_t next_ = 0;                 ///< index of the next request in requests_
    std::set<std::string> dropped_;        ///< GPUs that the recovery leaves out
    std::vector<std::string> emptied_;     ///< VFs that the rollback left with empty VRAM
    std::vector<std::string> conditions_;  ///< what could not be done or rolled back, and why
};

}  // namespace vgpu::daemon
