// SPDX-License-Identifier: MIT
//
// ApplyRun: applies one configuration. Collects inventories, makes the plan, records the intent
// (ApplyIntent), and carries out one request after the other. If a request fails or the run is
// cancelled, rolls back the finished requests in reverse order. Removes the intent at the end. If
// vgpud dies, or a GPU or the disk is lost, a recovery continues (apply_recovery.h).
//
//   Inventory --> (intent durable) --> Executing ---------> (end durable) --> Done
//       |                                | failed, cancelled      ^
//       |                                v                        |
//       |                      (direction durable) --> Undoing ---+--> Failed | Cancelled
//       +---------------------------------------------------------+
//
// Runs in the main loop: step() never waits; answers come by Manager::finish(). Made by Jobs.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/jobs/step_executor.h"
#include "daemon/service/manager.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Collects the inventories of `gpus`, in that order; fails with the first error.
void collect_inventories(Manager& manager, const std::vector<std::string>& gpus,
                         const Done<std::vector<GpuInventory>>& done);

/// The plan for `desired`, from `gpus` and the names on other GPUs.
Result<ChangePlan> plan_for(Manager& manager, const std::string& label,
                            const std::vector<DesiredGpu>& desired,
                            const std::vector<GpuInventory>& gpus);

/// What an apply has to do. desired_gpus() has checked `desired` against the existing GPUs.
struct ApplyOrder {
    std::string label;
    std::vector<DesiredGpu> desired;
    Force force = Force::No;              ///< Yes: the run may take VFs that are in use
    Disruption max = Disruption::VfLoss;  ///< a plan with more disruption is refused
    bool is_dry_run = false;              ///< true: the run ends when the plan is made
    std::string holder;                   ///< "job 3 (apply 'day')"
};

/// Locks its GPUs and names (Manager::lock()) from begin_inventories() to the end, so that no other
/// request creates, changes or destroys VFs that the plan depends on.
class ApplyRun final : public JobRun {
public:
    static constexpr Nanoseconds kScrubPollInterval = std::chrono::milliseconds(50);

    ApplyRun(Manager& manager, const Clock& clock, ApplyOrder order);
    ~ApplyRun() override;

    void step() override;
    [[nodiscard]] State state() const override;
    [[nodiscard]] double progress() const override;
    [[nodiscard]] std::optional<ApplyIntent> left_over() const override { return left_over_; }

private:
    enum class Phase { Inventory, Executing, Undoing, Over };

    bool advance();
    void begin_inventories();
    void on_inventories(Result<std::vector<GpuInventory>> gpus);
    Result<> accept(const ChangePlan& plan, std::span<const GpuInventory> gpus);
    /// Makes `intent` durable; none: removes the intent on record. Then calls `then`.
    void commit(const std::optional<ApplyIntent>& intent, const Done<>& then);
    bool begin_next();
    bool begin_undo();
    /// Records the request's inverse if there is something to roll back. After a failure, abandons
    /// the run.
    void end_step(const StepEnd& end);
    /// Records VFs that the step disabled, whether or not they exist again.
    void record_emptied_by_enable(const Step& step, const Result<>& result);
    /// Ends a request of the rollback. Records a failure, or a VF that now has empty VRAM.
    void end_undo(const Result<>& result);
    /// The resources defined for the VF of `step`, if the VF has no resources now; else none.
    [[nodiscard]] std::optional<VfResources> defined_if_absent(const Step& step) const;
    void abandon(Error error);
    void finish(State state);
    void leave_to_recovery();
    void end(State state);
    [[nodiscard]] std::string outcome_text() const;

    Manager& manager_;
    const Clock& clock_;
    ApplyOrder order_;
    StepExecutor executor_;
    Phase phase_ = Phase::Inventory;
    State ended_as_ = State::Failed;
    bool is_asking_ = false;         ///< true while a GPU's thread or the disk has yet to answer
    bool has_lock_ = false;          ///< true while this job holds the lock of Manager
    Nanoseconds inventories_at_{0};  ///< earliest time of the next inventories
    std::optional<Nanoseconds> inventories_deadline_;  ///< end of the wait for scrubs
    ApplyIntent intent_;
    std::vector<Request> requests_;
    std::size_t next_ = 0;                 ///< index of the next request in requests_
    std::vector<Request> to_undo_;         ///< inverse requests; the last one is sent first
    std::vector<std::string> emptied_;     ///< VFs that exist after a failure, but with empty VRAM
    std::vector<std::string> conditions_;  ///< what is not rolled back, and why
    bool may_be_recovered_ = false;        ///< true if some of conditions_ are temporary
    std::optional<ApplyIntent> left_over_;
};

}  // namespace vgpu::daemon
