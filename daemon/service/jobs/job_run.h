// SPDX-License-Identifier: MIT
//
// JobRun: the work of a job. The main loop calls step(), which never waits, until the work is over.
// Implemented by ApplyRun, ApplyRecovery and VfRun.
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
    /// Default delay until next_step().
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);

    JobRun() = default;
    virtual ~JobRun() = default;
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;

    /// Begins or continues the work. Returns when the work is over or has to wait.
    virtual void step() = 0;
    [[nodiscard]] virtual State state() const = 0;
    /// 0..1: finished requests / all requests.
    [[nodiscard]] virtual double progress() const = 0;
    /// When to call step() again if nothing else happens; max(): never.
    [[nodiscard]] virtual Nanoseconds next_step(Nanoseconds now) const {
        return now + kPollInterval;
    }
    /// After the end: the apply that a recovery has to finish or roll back, if any.
    [[nodiscard]] virtual std::optional<ApplyIntent> left_over() const { return {}; }
    [[nodiscard]] virtual bool can_be_cancelled() const { return true; }
    /// False while the request of a VfRun may still be refused.
    [[nodiscard]] virtual bool is_accepted() const { return true; }

    /// Takes effect in the next step(), or, during a request of a plan, after that request. No
    /// effect once the run is over.
    void cancel() { is_cancelled_ = true; }
    [[nodiscard]] bool is_over() const { return state() >= State::Done; }
    [[nodiscard]] const std::string& step_text() const { return step_text_; }
    /// Why the run failed, and the state that it left.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// JSON; empty until the plan is made.
    [[nodiscard]] const std::string& plan_text() const { return plan_text_; }
    /// The agent's report, if the job is finished and asked an agent.
    [[nodiscard]] const std::optional<AgentReport>& report() const { return report_; }

protected:
    [[nodiscard]] bool is_cancelled() const { return is_cancelled_; }
    /// Clears the request to cancel, for runs that may be cancelled more than once.
    void clear_cancel() { is_cancelled_ = false; }

    std::string step_text_;
    std::optional<Error> error_;
    std::string plan_text_;
    std::optional<AgentReport> report_;

private:
    bool is_cancelled_ = false;
};

}  // namespace vgpu::daemon
