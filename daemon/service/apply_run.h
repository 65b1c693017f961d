// SPDX-License-Identifier: MIT
//
// ApplyRun: one configuration on its way. Asks every GPU what it has, makes the plan, carries it
// out act by act (the settings of a GPU are one act), and takes everything back if an act fails or
// the run is cancelled: in reverse, as far as that is possible. Each act is durable by itself, so a
// vgpud that dies in the middle leaves every VF old or new, and planning again shows the rest.
//
//   Surveying --> Acting --------------------> Done
//       |           | failed, cancelled
//       |           v
//       +----> Undoing ----> Failed | Cancelled
//
// Runs in the main loop: step() never waits, answers come by Manager::finish(). Made by Jobs.
#pragma once

#include "daemon/service/change_plan.h"
#include "daemon/service/manager.h"

#include <optional>
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
    Force force = Force::No;  ///< on VFs that are in use
    bool is_dry_run = false;  ///< ends when the plan is made
    std::string holder;       ///< "job 3 (apply 'day')"
};

/// From begin_survey() until it is over it holds its GPUs and names (Manager::hold), so that
/// nothing it planned with changes under it.
class ApplyRun {
public:
    enum class State { Surveying, Acting, Undoing, Done, Failed, Cancelled };

    /// A scrub reads and writes all of a VF's VRAM.
    static constexpr Nanoseconds kActTimeout = std::chrono::seconds(60);
    static constexpr Nanoseconds kSurveyAgain = std::chrono::milliseconds(50);

    ApplyRun(Manager& manager, const Clock& clock, ApplyOrder order);
    ~ApplyRun();
    ApplyRun(const ApplyRun&) = delete;
    ApplyRun& operator=(const ApplyRun&) = delete;

    /// Goes on as far as it can; also begins.
    void step();
    /// The act under way is finished, then all is taken back; without effect once it is over.
    void cancel() { is_cancelled_ = true; }

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] bool is_over() const { return state_ >= State::Done; }
    /// 0..1, in acts, not in time.
    [[nodiscard]] double progress() const;
    /// What is being done, in words.
    [[nodiscard]] const std::string& step_text() const { return step_text_; }
    /// Why it failed, and what that left.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// The plan as JSON; empty until it is made.
    [[nodiscard]] const std::string& plan_text() const { return plan_text_; }

private:
    /// Steps that are done by one request.
    using Act = std::vector<Step>;
    /// What has to come true before the act is over.
    struct Awaited {
        Step step;
        std::uint32_t generation = 0;
        Nanoseconds deadline{0};
    };

    bool advance();
    void begin_survey();
    void on_survey(Result<std::vector<GpuInventory>> gpus);
    Result<> accept(ChangePlan plan);
    bool begin_next();
    /// True if something happened at once.
    bool begin_undo();
    /// Asks the GPU's thread; on_answer() goes on.
    void perform(const Act& act, Force force);
    void on_answer(const Step& step, Result<std::uint32_t> generation);
    [[nodiscard]] std::optional<Result<>> outcome() const;
    [[nodiscard]] Result<> outcome_of_resize(const GpuSnapshot& seen) const;
    /// AtOnce: a failure changed nothing. Late: it may still come to its end.
    enum class Ended { AtOnce, Afterwards, Late };
    /// While acting: notes the inverse or gives up. While undoing: notes what could not be taken
    /// back.
    void end_act(const Result<>& result, Ended ended);
    void give_up(Error error);
    void end(State state);
    [[nodiscard]] std::string aftermath() const;

    Manager& manager_;
    const Clock& clock_;
    ApplyOrder order_;
    State state_ = State::Surveying;
    bool is_asking_ = false, is_holding_ = false, is_cancelled_ = false;
    Nanoseconds survey_at_{0};
    std::optional<Nanoseconds> survey_deadline_;
    ChangePlan plan_;
    std::string plan_text_;
    std::vector<Act> acts_;
    std::size_t next_ = 0;               ///< of acts_
    std::vector<Act> to_undo_;           ///< inverses, the last to be undone first
    std::vector<std::string> emptied_;   ///< VFs that were made again without their content
    std::vector<std::string> troubles_;  ///< of undoing
    std::optional<Awaited> awaited_;
    std::string step_text_;
    std::optional<Error> error_;
};

}  // namespace vgpu::daemon
