// SPDX-License-Identifier: MIT
//
// StepExecutor: carries out the acts of a plan, one at a time. An act is one request to a GPU: a
// create, a resize, a destroy, or any number of settings. The GPU's thread makes the request. A
// resize or destroy is over when its scrub is recorded. Main loop; never waits.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/manager.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Steps done by one request.
using Act = std::vector<Step>;

/// Consecutive settings of one GPU are one act, so that no half of a schedule is ever in force.
std::vector<Act> acts_of(const ChangePlan& plan);
/// "resize gpu0/vf2 'b'"
std::string describe(const Step& step);
std::string describe(const Act& act);
/// Whether the VFs of `act` exist with empty VRAM afterwards.
bool empties(const Act& act);
/// Whether a later attempt may succeed: the GPU does not answer, or the disk refuses.
bool may_pass(ErrorId id);
/// Whether the error says that the GPU does not answer.
bool is_loss(ErrorId id);
/// Whether `act` only changes settings: one record, nothing on the device.
bool is_setting(const Act& act);

/// When an act ended. AtOnce: with the request; a failure changed nothing. Afterwards: when the
/// device was done. Late: not in time; the act may still complete.
enum class Ended { AtOnce, Afterwards, Late };
struct StepEnd {
    Result<> result;
    Ended ended = Ended::AtOnce;
};

class StepExecutor {
public:
    /// A scrub reads and writes all VRAM of a VF.
    static constexpr Nanoseconds kTimeout = std::chrono::seconds(60);

    StepExecutor(Manager& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

    /// Begins `act`; no act may be under way. Forces a use that `intent` forgives at the time of
    /// the act. A VF that is made again gets its owner back, unless that claim has ended.
    void begin(Act act, const ApplyIntent& intent);
    [[nodiscard]] bool is_under_way() const { return step_.has_value(); }
    /// The end of the act, once; none while it runs.
    std::optional<StepEnd> take_end();

private:
    void on_answer(Result<std::uint32_t> generation);
    [[nodiscard]] std::optional<Result<>> outcome() const;
    [[nodiscard]] Result<> outcome_of_resize(const GpuSnapshot& seen) const;

    Manager& manager_;
    const Clock& clock_;
    std::optional<Step> step_;  ///< first step of the act under way
    bool is_awaited_ = false;   ///< the request is done, and the device has to end the act
    std::uint32_t generation_ = 0;
    Nanoseconds deadline_{0};
    std::optional<StepEnd> end_;
};

}  // namespace vgpu::daemon
