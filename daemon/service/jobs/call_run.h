// SPDX-License-Identifier: MIT
//
// CallRun: one long request as a job, for callers that do not wait. Begins the request once, and
// ends with its answer. Locks no GPU and is independent of other jobs.
#pragma once

#include "daemon/service/jobs/job_run.h"
#include "daemon/service/views/views.h"

#include <functional>
#include <memory>
#include <string>

namespace vgpu::daemon {

struct CallOrder {
    std::string kind;  ///< of the job: destroy | self-test | quiesce | thaw
    std::string step;  ///< what the job waits for, as text
    /// The agent's report, if the request asks an agent.
    using Answer = Result<std::optional<AgentReport>>;
    /// Begins the request, which calls its argument once, perhaps after the job is gone.
    std::function<void(std::function<void(Answer)>)> begin;
    /// Empty: the request cannot be cancelled.
    std::function<void()> cancel;
};

class CallRun final : public JobRun {
public:
    explicit CallRun(CallOrder order);

    void step() override;
    [[nodiscard]] State state() const override { return outcome_->state; }
    [[nodiscard]] double progress() const override;
    [[nodiscard]] bool can_be_cancelled() const override { return order_.cancel != nullptr; }

private:
    /// Shared with the answer, which may come after the job is gone.
    struct Outcome {
        State state = State::Running;
        CallOrder::Answer answer;
    };

    CallOrder order_;
    std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

}  // namespace vgpu::daemon
