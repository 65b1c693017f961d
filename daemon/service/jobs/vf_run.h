// SPDX-License-Identifier: MIT
//
// VfRun: a job with one request for one VF. Passes the request to the GPU's thread or to the agent
// in the guest, and waits for the answer. Then it waits for the device, unless the answer ends the
// job. Locks no GPU and is independent of other jobs. If the job is gone, the device still finishes
// the request.
#pragma once

#include "daemon/service/agents/agents.h"
#include "daemon/service/jobs/job_run.h"
#include "daemon/service/manager.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// The methods of org.vgpu1.Vf that begin a job, in the order of kRows (vf_run.cpp).
enum class VfJob { Destroy, Reset, Resume, ClearQuarantine, SelfTest, Quiesce, Thaw };

/// "self-test"; the value of Job.Kind.
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
    /// The deadline, if one is set. For a quiesce, the time to read counters again, because no
    /// event reports counters. Answers and snapshots wake the main loop by themselves.
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const override;
    /// True for requests to the agent. The device cannot stop other requests half-way.
    [[nodiscard]] bool can_be_cancelled() const override { return job_ >= VfJob::SelfTest; }
    [[nodiscard]] bool is_accepted() const override { return deadline_ || can_be_cancelled(); }

private:
    friend std::string_view kind_of(VfJob job);
    struct Row;
    /// Shared with the callback, which may come after the job is gone.
    struct Request {
        std::optional<Result<>> answer{};
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
    void request_refresh_now();
    void thaw();
    void end(Result<> result);

    Services services_;
    const VfJob job_;
    const Target target_;
    State state_ = State::Running;
    std::shared_ptr<Request> request_ = std::make_shared<Request>();
    std::optional<Nanoseconds> deadline_;  ///< end of the wait for the device; set once the
                                           ///< request is accepted
};

}  // namespace vgpu::daemon
