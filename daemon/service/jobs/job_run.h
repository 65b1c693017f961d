// SPDX-License-Identifier: MIT
//
// JobRun: the work of a job. Jobs (jobs.h) calls step(), which never waits, in the main loop until
// the work is over. Implemented by ApplyRun, ApplyRecovery and VfRun.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/result.h"
#include "daemon/service/config/apply_intent.h"
#include "daemon/service/views/views.h"

#include <optional>
#include <string>

namespace vgpu::daemon {

class JobRun {
public:
    enum class State { Running, RollingBack, Done, Failed, Cancelled };
    /// Default delay until the next step().
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);

    JobRun() = default;
    virtual ~JobRun() = default;
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;

    /// Begins or continues the work. Returns when the work is over or must wait for something.
    virtual void step() = 0;
    /// The work is over in Done, Failed and Cancelled.
    [[nodiscard]] virtual State state() const = 0;
    /// 0..1: finished requests / all requests of the plan; 1 if Done.
    [[nodiscard]] virtual double progress() const = 0;
    /// When to call step() again if nothing else happens; max(): never.
    [[nodiscard]] virtual Nanoseconds next_step(Nanoseconds now) const {
        return now + kPollInterval;
    }
    /// The apply that a recovery must finish or roll back, once after the end of the run; else
    /// none.
    [[nodiscard]] virtual std::optional<ApplyIntent> take_left_over() { return {}; }
    [[nodiscard]] virtual bool can_be_cancelled() const { return true; }
    /// False while the GPU may still refuse the request of a VfRun.
    [[nodiscard]] virtual bool is_accepted() const { return true; }

    /// Requests the end of the run. Takes effect in the next step() or, while a request of a plan
    /// is under way, after that request. No effect if the run is over by then.
    void cancel() { is_cancelled_ = true; }
    [[nodiscard]] bool is_over() const { return state() >= State::Done; }
    /// What the run does now, as text; may be empty.
    [[nodiscard]] const std::string& step_text() const { return step_text_; }
    /// Why the run failed, was cancelled or began a rollback. At the end of an apply, also in
    /// which state the apply left the VFs. None otherwise.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// The plan as JSON (encode_change_plan()); empty until the plan is made.
    [[nodiscard]] const std::string& plan_text() const { return plan_text_; }
    /// The agent's report, if the job is done and asked an agent.
    [[nodiscard]] const std::optional<AgentReport>& report() const { return report_; }

protected:
    [[nodiscard]] bool is_cancelled() const { return is_cancelled_; }
    /// Ends the effect of cancel(), for runs that may be cancelled more than once.
    void clear_cancel() { is_cancelled_ = false; }

    std::string step_text_;
    std::optional<Error> error_;
    std::string plan_text_;
    std::optional<AgentReport> report_;

private:
    bool is_cancelled_ = false;
};

}  // namespace vgpu::daemon
