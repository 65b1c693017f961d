// SPDX-License-Identifier: MIT
#include "daemon/service/jobs/call_run.h"

#include <utility>

namespace vgpu::daemon {

CallRun::CallRun(CallOrder order) : order_(std::move(order)) {
    step_text_ = order_.step;
    order_.begin([outcome = outcome_](const CallOrder::Answer& answer) {
        if (outcome->state != State::Running) return;
        outcome->state = answer ? State::Done : State::Failed;
        outcome->answer = answer;
    });
}

void CallRun::step() {
    if (is_cancelled() && outcome_->state == State::Running) {
        outcome_->state = State::Cancelled;
        order_.cancel();
    }
    if (is_over()) step_text_.clear();
    if (outcome_->state == State::Failed) error_ = outcome_->answer.error();
    if (outcome_->state == State::Done) report_ = *outcome_->answer;
}

double CallRun::progress() const {
    return outcome_->state == State::Done ? 1 : 0;
}

}  // namespace vgpu::daemon
