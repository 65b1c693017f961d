// SPDX-License-Identifier: MIT
//
// VfRun: the work of a job that makes one request for one VF. Passes the request to the GPU's
// thread, or to the agent in the guest, and waits for the answer. Then waits for the device, unless
// the answer ends the job. Locks no GPU and is independent of other jobs. If the job is destroyed,
// the device still finishes the request.
#pragma once

#include "daemon/service/agents/agents.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/manager.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// The methods of org.vgpu1.Vf that begin a job, in the order of kRows (vf_run.cpp). SelfTest,
/// Quiesce and Thaw are requests to the agent.
enum class VfJob { Destroy, Reset, Resume, ClearQuarantine, SelfTest, Quiesce, Thaw };

/// The value of the D-Bus property Job.Kind, such as "self-test".
[[nodiscard]] std::string_view kind_of(VfJob job);

class VfRun final : public JobRun {
public:
    /// These objects outlive the job.
    struct Services {
        Manager& manager;
        Agents& agents;
        const Clock& clock;
    };

    /// Begins the request. Afterwards step() sets error() if the request was refused at once.
    VfRun(const Services& services, VfJob job, Target target, const Options& options);

    void step() override;
    [[nodiscard]] State state() const override { return state_; }
    [[nodiscard]] double progress() const override { return state_ == State::Done ? 1 : 0; }
    /// Without an answer: never, because the answer wakes the main loop. With an answer that step()
    /// has not seen: now. While step() waits for the device: the deadline, because a new snapshot
    /// wakes the main loop. But a quiesce polls, because no event reports the counters that show
    /// whether the VF has work.
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const override;
    /// True for requests to the agent. The device cannot stop other requests half-way.
    [[nodiscard]] bool can_be_cancelled() const override { return job_ >= VfJob::SelfTest; }
    /// Requests to the agent count as accepted at once, so their jobs never show "waiting".
    [[nodiscard]] bool is_accepted() const override { return deadline_ || can_be_cancelled(); }

private:
    friend std::string_view kind_of(VfJob job);
    struct Row;
    /// Shared with the callback of the request, which may outlive the job.
    struct Request {
        std::optional<Result<>> answer{};   ///< none until the callback is called
        std::uint32_t generation = 0;       ///< generation of a VF that is being destroyed
        std::optional<AgentReport> report;  ///< the agent's report, if an agent was asked
    };
    static const Row kRows[];

    [[nodiscard]] const Row& row() const;
    [[nodiscard]] GpuHost& gpu() const { return *services_.manager.find_gpu(target_.gpu); }
    void destroy(const Options& options);
    template <vgpu_pf_control_action Action> void control(const Options& options);
    template <AgentRequest Request> void request_from_agent(const Options& options);
    [[nodiscard]] bool is_gone();
    [[nodiscard]] bool is_not_resetting();
    [[nodiscard]] bool is_idle();
    /// Reads the VF again; step() waits for the values. If the read fails, the job fails.
    void request_refresh_now();
    void thaw();
    void end(Result<> result);

    Services services_;
    const VfJob job_;
    const Target target_;
    State state_ = State::Running;
    std::shared_ptr<Request> request_ = std::make_shared<Request>();
    /// AgentView::connected_since when the agent was asked.
    Nanoseconds agent_since_{0};
    std::optional<Nanoseconds> deadline_;  ///< end of the wait for the device; set once the
                                           ///< request is accepted
};

}  // namespace vgpu::daemon
