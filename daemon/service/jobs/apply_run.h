// SPDX-License-Identifier: MIT
//
// ApplyRun: one configuration on its way. Asks every GPU what it has, makes the plan, has its
// intent recorded (ApplyIntent), carries it out act by act, and takes everything back if an act
// fails or the run is cancelled: in reverse, as far as that is possible. The record goes with the
// end; a vgpud that finds one finishes the apply or takes it back (apply_recovery.h), so does
// another job if the GPU or the disk was lost in the middle.
//
//   Surveying --> (intent durable) --> Acting ------------> (end durable) --> Done
//       |                                | failed, cancelled      ^
//       |                                v                        |
//       |                      (direction durable) --> Undoing ---+--> Failed | Cancelled
//       +---------------------------------------------------------+
//
// Runs in the main loop: step() never waits, answers come by Manager::finish(). Made by Jobs.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/jobs/act_runner.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/manager.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Inventories of `gpus`, in that order, or the error of the first that has none.
void survey(Manager& manager, const std::vector<std::string>& gpus,
            const Done<std::vector<GpuInventory>>& done);

/// The plan for `wanted`, from what `gpus` are like now and from the names elsewhere.
Result<ChangePlan> plan_for(Manager& manager, const std::string& label,
                            const std::vector<WantedGpu>& wanted,
                            const std::vector<GpuInventory>& gpus);

/// `wanted` was checked against the GPUs there are (want()).
struct ApplyOrder {
    std::string label;
    std::vector<WantedGpu> wanted;
    Force force = Force::No;               ///< on VFs that are in use
    Disruption most = Disruption::VfLoss;  ///< a plan that comes to more is not carried out
    bool is_dry_run = false;               ///< ends when the plan is made
    std::string holder;                    ///< "job 3 (apply 'day')"
};

/// From begin_survey() until it is over it holds its GPUs and names (Manager::hold), so that
/// nothing it planned with changes under it.
class ApplyRun final : public JobRun {
public:
    static constexpr Nanoseconds kSurveyAgain = std::chrono::milliseconds(50);

    ApplyRun(Manager& manager, const Clock& clock, ApplyOrder order);
    ~ApplyRun() override;

    void step() override;
    [[nodiscard]] State state() const override;
    [[nodiscard]] double progress() const override;
    [[nodiscard]] std::optional<ApplyIntent> left_over() const override { return left_over_; }

private:
    enum class Phase { Surveying, Acting, Undoing, Over };

    bool advance();
    void begin_survey();
    void on_survey(Result<std::vector<GpuInventory>> gpus);
    Result<> accept(const ChangePlan& plan, std::span<const GpuInventory> gpus);
    /// Asks for the record to be made durable; `then` goes on.
    void commit(const std::optional<ApplyIntent>& intent, const Done<>& then);
    bool begin_next();
    bool begin_undo();
    /// Notes the inverse, or gives up.
    void end_act(const ActEnd& end);
    /// Notes what could not be taken back.
    void end_undo(const Result<>& result);
    /// What the VF of `step` is defined to have, if it has no resources now.
    [[nodiscard]] std::optional<VfShape> defined_only(const Step& step) const;
    void give_up(Error error);
    void finish(State state);
    void leave();
    void end(State state);
    [[nodiscard]] std::string aftermath() const;

    Manager& manager_;
    const Clock& clock_;
    ApplyOrder order_;
    ActRunner runner_;
    Phase phase_ = Phase::Surveying;
    State ended_as_ = State::Failed;
    bool is_asking_ = false, is_holding_ = false;
    Nanoseconds survey_at_{0};
    std::optional<Nanoseconds> survey_deadline_;
    ApplyIntent intent_;
    std::vector<Act> acts_;
    std::size_t next_ = 0;               ///< of acts_
    std::vector<Act> to_undo_;           ///< inverses, the last to be undone first
    std::vector<std::string> emptied_;   ///< VFs that were made again without their content
    std::vector<std::string> troubles_;  ///< of undoing
    bool may_be_recovered_ = false;      ///< some of these are troubles of now
    std::optional<ApplyIntent> left_over_;
};

}  // namespace vgpu::daemon
