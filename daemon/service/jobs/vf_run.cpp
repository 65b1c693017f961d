// SPDX-License-Identifier: MIT
#include "daemon/service/jobs/vf_run.h"

#include <fmt/format.h>
#include <utility>

namespace vgpu::daemon {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

struct VfRun::Row {
    std::string_view kind;
    std::string_view step;  ///< what happens to the VF, for step_text()
    void (VfRun::*begin)(const Options&);
    bool (VfRun::*has_ended)();  ///< true if the device has finished; null: the answer ends the job
    Nanoseconds limit;           ///< longest wait for the device; then the job fails with TimedOut
    std::string_view late;       ///< text of the error TimedOut
};

constexpr VfRun::Row VfRun::kRows[]{
    {"destroy", "its VRAM is scrubbed", &VfRun::destroy, &VfRun::is_gone, 1h,
     "is still being scrubbed"},
    {"reset", "its guest is notified, and the function is reset", &VfRun::control<VGPU_PF_RESET>,
     &VfRun::is_not_resetting, 30s, "is still resetting"},
    {"resume", "it returns to service", &VfRun::control<VGPU_PF_RESUME>, &VfRun::is_not_resetting,
     30s, "is still resetting"},
    {"clear-quarantine", "the function is reset", &VfRun::control<VGPU_PF_CLEAR_QUARANTINE>,
     &VfRun::is_not_resetting, 30s, "is still resetting"},
    {"self-test",
     "the agent tests it",
     &VfRun::request_from_agent<AgentRequest::SelfTest>,
     nullptr,
     {},
     {}},
    {"quiesce", "the agent stops its processes, and the device finishes its work",
     &VfRun::request_from_agent<AgentRequest::Quiesce>, &VfRun::is_idle, 30s,
     "still has work; its processes continue"},
    {"thaw",
     "the agent lets its processes continue",
     &VfRun::request_from_agent<AgentRequest::Thaw>,
     nullptr,
     {},
     {}},
};

std::string_view kind_of(VfJob job) {
    return VfRun::kRows[static_cast<std::size_t>(job)].kind;
}

const VfRun::Row& VfRun::row() const {
    return kRows[static_cast<std::size_t>(job_)];
}

VfRun::VfRun(const Services& services, VfJob job, Target target, const Options& options)
    : services_(services), job_(job), target_(std::move(target)) {
    step_text_ = fmt::format("{}: {}", path_of(target_), row().step);
    (this->*row().begin)(options);
}

void VfRun::step() {
    if (is_over()) return;
    if (is_cancelled()) {
        if (job_ == VfJob::Quiesce) thaw();
        end(fail(ErrorId::Cancelled,
                 fmt::format("{}: the {} was cancelled", path_of(target_), row().kind)));
        state_ = State::Cancelled;
        return;
    }
    if (!request_->answer) return;
    if (!*request_->answer || row().has_ended == nullptr) return end(*request_->answer);
    // The agent has refused. Its report says so, and there is nothing to wait for.
    if (request_->report && !request_->report->is_ok) return end({});
    const Nanoseconds now = services_.clock.now();
    if (!deadline_) {
        deadline_ = now + row().limit;
        // The snapshot may be older than the moment when the agent stopped the processes.
        if (job_ == VfJob::Quiesce) return request_refresh_now();
    }
    if ((this->*row().has_ended)()) return end({});
    if (now >= *deadline_)
        end(fail(ErrorId::TimedOut, fmt::format("{} {}", path_of(target_), row().late)));
}

Nanoseconds VfRun::next_step(Nanoseconds now) const {
    // an answer may come after step() in the same iteration of the main loop
    if (!deadline_) return request_->answer ? now : Nanoseconds::max();
    return job_ == VfJob::Quiesce ? JobRun::next_step(now) : *deadline_;
}

void VfRun::destroy(const Options& options) {
    services_.manager.destroy(target_, options,
                              [request = request_](const Result<std::uint32_t>& generation) {
                                  request->generation = generation.value_or(0);
                                  request->answer = generation.map([](std::uint32_t) {});
                              });
}

template <vgpu_pf_control_action Action> void VfRun::control(const Options& options) {
    services_.manager.control(
        target_, Action, options,
        [request = request_](const Result<>& accepted) { request->answer = accepted; });
}

template <AgentRequest Request> void VfRun::request_from_agent(const Options& options) {
    agent_since_ = services_.agents.view(target_).connected_since;
    services_.agents.ask(target_, Request, options,
                         [request = request_](const Result<AgentReport>& report) {
                             if (report) request->report = *report;
                             request->answer = report.map([](const AgentReport&) {});
                         });
}

/// Compares generations, because a new VF may have the same number.
bool VfRun::is_gone() {
    const auto seen = gpu().snapshot();
    return !seen->has_vf(target_.vf) ||
           seen->vfs.at(target_.vf).active.generation != request_->generation;
}

bool VfRun::is_not_resetting() {
    return gpu().snapshot()->vf_state(target_.vf) != VGPU_PF_VF_RESETTING;
}

/// True if the VF has no work or no longer exists. If the GPU is no longer in state Ok, reads the
/// VF again; this read fails and ends the job with the reason.
bool VfRun::is_idle() {
    // Requests counters for the next check, unless the last ones are newer than kFreshness. Without
    // this limit, each snapshot with new counters would wake step(), and step() would request
    // counters again at once.
    static_cast<void>(gpu().request_refresh(Freshness::Counters, GpuModel::kFreshness));
    const auto seen = gpu().snapshot();
    if (seen->gpu.state != GpuState::Ok) {
        request_refresh_now();
        return false;
    }
    return !seen->has_vf(target_.vf) || !seen->vfs.at(target_.vf).active.has_work();
}

void VfRun::request_refresh_now() {
    request_ = std::make_shared<Request>(Request{.report = request_->report});
    gpu().ask<void>([vf = target_.vf](GpuModel& model) { return model.refresh_now(vf); },
                    [request = request_](const Result<>& result) { request->answer = result; });
}

/// Ignores the result, because no caller waits for it.
void VfRun::thaw() {
    services_.agents.ask(target_, AgentRequest::Thaw, {}, [](const Result<AgentReport>&) {});
}

/// If a quiesce fails after the agent has stopped the processes, asks the agent to resume them.
/// Also does so if the agent has not answered in time, because it may still stop the processes. If
/// the agent is gone or has restarted, the processes have resumed, so the quiesce fails.
void VfRun::end(Result<> result) {
    if (job_ == VfJob::Quiesce && !is_cancelled()) {
        const AgentView agent = services_.agents.view(target_);
        if (deadline_ && (!agent.is_connected || agent.connected_since != agent_since_))
            result = fail(ErrorId::NoAgent,
                          fmt::format("{}: its agent is gone or has restarted, its processes "
                                      "continue",
                                      path_of(target_)));
        else if (!result && (deadline_ || result.error().id == ErrorId::TimedOut))
            thaw();
    }
    state_ = result ? State::Done : State::Failed;
    step_text_.clear();
    if (result)
        report_ = request_->report;
    else
        error_ = result.error();
}

}  // namespace vgpu::daemon
