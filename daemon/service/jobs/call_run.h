// SPDX-License-Identifier: MIT
//
// CallRun: one request that may take long, as a job: for callers that do not want to wait for its
// answer. It is begun once and over when it is answered. It holds no GPU, and neither waits for
// other jobs nor lets them wait.
#pragma once

#include "daemon/service/jobs/job_run.h"
#include "daemon/service/views/views.h"

#include <functional>
#include <memory>
#include <string>

namespace vgpu::daemon {

struct CallOrder {
    std::string kind;  ///< of the job: destroy | self-test | quiesce | thaw
    std::string step;  ///< what is waited for, in words
    /// What the agent said, of a request that asks one.
    using Answer = Result<std::optional<AgentReport>>;
    /// Begins the request; calls its argument once, at once or later. The job may be gone by then.
    std::function<void(std::function<void(Answer)>)> begin;
    /// Takes back what can be; empty: the request cannot be taken back.
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
    /// Shared with whoever answers, who may do so when the job has gone.
    struct Outcome {
        State state = State::Running;
        CallOrder::Answer answer;
    };

    CallOrder order_;
    std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

}  // namespace vgpu::daemon
