// SPDX-License-Identifier: MIT
//
// StepExecutor: carries out the requests of a plan, one at a time. A request concerns one GPU: an
// enable, a create, a resize, a destroy, or any number of settings. The GPU's thread carries the
// request out. A destroy ends when its scrub is recorded, a resize when the VF's resources are
// recorded. Runs in the main loop and never waits.
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

/// The requests of a plan. Consecutive settings of one GPU are one request, so that a partly
/// changed schedule is never in force.
std::vector<Request> requests_of(const ChangePlan& plan);
/// The step as text: "resize gpu0/vf2 'b'".
std::string describe(const Step& step);
/// The request as text: its first step and, if there are more, their number.
std::string describe(const Request& request);
/// True if the request creates or resizes a VF, which then has empty VRAM.
bool empties(const Request& request);
/// True if a later attempt may succeed: the error is a loss, or the disk refused.
bool is_temporary(ErrorId id);
/// True if the error says that vgpud cannot use the GPU now.
bool is_loss(ErrorId id);
/// True if `request` only changes settings and names.
bool is_setting(const Request& request);

/// When a request ended.
enum class Ended {
    AtOnce,      ///< when the GPU's thread answered
    Afterwards,  ///< when the device had finished
    Late,        ///< when StepExecutor::kTimeout was over; the request may still complete
};
struct StepEnd {
    Result<> result;
    Ended ended = Ended::AtOnce;
};

class StepExecutor {
public:
    /// Limit of a resize or destroy, which waits for a scrub of all VRAM of the VF.
    static constexpr Nanoseconds kTimeout = std::chrono::seconds(60);

    StepExecutor(Manager& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

    /// Begins `request`; no request may be under way. Uses force if `intent` allows force at the
    /// time of the request. A VF that is created again gets its owner back, unless the owner's
    /// claim has ended.
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
    std::optional<Step> step_;    ///< first step of the request under way
    bool awaits_device_ = false;  ///< true if the answer has come and the device must still finish
    std::uint32_t generation_ = 0;  ///< generation of the VF that a destroy removes
    Nanoseconds deadline_{0};
    std::optional<StepEnd> end_;
};

}  // namespace vgpu::daemon
