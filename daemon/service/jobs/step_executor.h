// SPDX-License-Identifier: MIT
//
// StepExecutor: carries out the requests of a plan, one at a time. A request concerns one GPU: a
// create, a resize, a destroy, or any number of settings. The GPU's thread carries it out. A
// resize or destroy ends when its scrub is recorded. Main loop; never waits.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/manager.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Steps done by one request.
using Request = std::vector<Step>;

/// Consecutive settings of one GPU are one request, so that no half of a schedule is ever in force.
std::vector<Request> requests_of(const ChangePlan& plan);
/// "resize gpu0/vf2 'b'"
std::string describe(const Step& step);
std::string describe(const Request& request);
/// Whether the VFs of `request` exist with empty VRAM afterwards.
bool empties(const Request& request);
/// Whether a later attempt may succeed: the GPU does not answer, or the disk refuses.
bool may_pass(ErrorId id);
/// Whether the error says that the GPU does not answer.
bool is_loss(ErrorId id);
/// Whether `request` only changes settings: one record, nothing on the device.
bool is_setting(const Request& request);

/// When a request ended. AtOnce: when the GPU's thread answered; a failure changed nothing.
/// Afterwards: when the device had finished. Late: not in time; it may still complete.
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

    /// Begins `request`; no request may be under way. Uses force where `intent` allows it at the
    /// time of the request. A VF that is created again gets its owner back, unless that claim has
    /// ended.
    void begin(Request request, const ApplyIntent& intent);
    [[nodiscard]] bool is_under_way() const { return step_.has_value(); }
    /// The end of the request, once; none while it runs.
    std::optional<StepEnd> take_end();

private:
    void on_answer(Result<std::uint32_t> generation);
    [[nodiscard]] std::optional<Result<>> outcome() const;
    [[nodiscard]] Result<> outcome_of_resize(const GpuSnapshot& seen) const;

    Manager& manager_;
    const Clock& clock_;
    std::optional<Step> step_;  ///< first step of the request under way
    bool is_awaited_ = false;   ///< the GPU's thread has answered; the device has not finished
    std::uint32_t generation_ = 0;
    Nanoseconds deadline_{0};
    std::optional<StepEnd> end_;
};

}  // namespace vgpu::daemon
