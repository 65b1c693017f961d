// SPDX-License-Identifier: MIT
//
// ApplyRun: applies one configuration. Collects inventories, makes the plan, records the intent
// (ApplyIntent), and carries out one request after the other. If a request fails or the run is
// cancelled, rolls back what the requests have changed, the latest first. Removes the intent at the
// end. If vgpud dies, or a GPU or the disk is lost, a recovery continues (apply_recovery.h). At
// "(x durable)" the run waits until x is in the state files:
//
//   Inventory --> (intent durable) --> Executing --> (end durable) --> Done
//       |                                  | failed, cancelled
//       |                                  v
//       |                          (rollback durable) --> Undoing --> (end durable)
//       | failed, cancelled                                                 |
//       +-------------------------------------------------------------------+--> Failed, Cancelled
//
// A dry run, or a plan without steps, goes from Inventory to Done. Runs in the main loop: step()
// never waits, and answers come by Manager::finish(). Made by Jobs.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/jobs/step_executor.h"
#include "daemon/service/manager.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::daemon {

/// Collects the inventories of `gpus`. `done` gets them in the order of `gpus`, or the first error.
void collect_inventories(Manager& manager, const std::vector<std::string>& gpus,
                         const Done<std::vector<GpuInventory>>& done);

/// The plan for `desired`. `gpus`: inventories of the desired GPUs. Fails as make_change_plan().
Result<ChangePlan> plan_for(Manager& manager, const std::string& label,
                            const std::vector<DesiredGpu>& desired,
                            const std::vector<GpuInventory>& gpus);

/// The task of an apply. desired_gpus() has made `desired`, so its GPUs exist.
struct ApplyOrder {
    std::string label;  ///< label of the configuration
    std::vector<DesiredGpu> desired;
    Force force = Force::No;              ///< Yes: the run may take VFs that are in use
    Disruption max = Disruption::VfLoss;  ///< the run does not begin a plan with more disruption
    bool is_dry_run = false;              ///< true: the run ends when the plan is made
    std::string holder;                   ///< for Manager::lock(): "job 3 (apply 'day')"
};

/// Locks its GPUs and names (Manager::lock()) from begin_inventories() to the end, so that no other
/// D-Bus request creates, changes or destroys VFs that the plan depends on.
class ApplyRun final : public JobRun {
public:
    /// Delay before vgpud checks again whether scrubs have ended.
    static constexpr Nanoseconds kScrubPollInterval = std::chrono::milliseconds(50);

    ApplyRun(Manager& manager, const Clock& clock, ApplyOrder order);
    ~ApplyRun() override;

    void step() override;
    [[nodiscard]] State state() const override;
    [[nodiscard]] double progress() const override;
    [[nodiscard]] std::optional<ApplyIntent> take_left_over() override {
        return std::exchange(left_over_, std::nullopt);
    }

private:
    enum class Phase { Inventory, Executing, Undoing, Over };

    bool advance();
    void begin_inventories();
    void on_inventories(Result<std::vector<GpuInventory>> gpus);
    Result<> accept(const ChangePlan& plan, std::span<const GpuInventory> gpus);
    /// Records `intent` in the state files; none: removes the recorded intent. Then calls `then`.
    void commit(const std::optional<ApplyIntent>& intent, const Done<>& then);
    bool begin_next();
    bool begin_undo();
    /// Call it when a request has ended. Adds its inverse to to_undo_ if there may be something to
    /// roll back. After a failure, abandons the run. During a rollback, only calls end_undo().
    void end_step(const StepEnd& end);
    /// If `step` is an Enable that may have emptied the VRAM of VFs, adds these VFs to emptied_.
    void record_emptied_by_enable(const Step& step, const Result<>& result);
    /// Call it when a request of the rollback has ended. Adds a failure to conditions_, or a VF
    /// whose VRAM is now empty to emptied_.
    void end_undo(const Result<>& result);
    /// The resources that the VF of `step` has on record, if it has no resources now; else none.
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
    std::size_t next_ = 0;                  ///< index of the next request in requests_
    std::vector<Request> to_undo_;          ///< inverse requests; the last one is sent first
    std::vector<std::string> emptied_;      ///< VFs that a failed apply leaves with empty VRAM
    std::vector<std::string> conditions_;   ///< what is not rolled back, and why
    bool may_be_recovered_ = false;         ///< true if a recovery may end some of conditions_
    std::optional<ApplyIntent> left_over_;  ///< what a recovery must continue, if anything
};

}  // namespace vgpu::daemon
