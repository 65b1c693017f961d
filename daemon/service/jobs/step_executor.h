// SPDX-License-Identifier: MIT
//
// StepExecutor: carries out the requests of a plan, one at a time. A request concerns one GPU: an
// enable, a create, a resize, a destroy, or any number of settings. The GPU's thread carries it
// out. A destroy ends when its scrub is recorded, a resize when the VF's resources are recorded.
// Runs in the main loop and never waits.
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

/// Consecutive settings of one GPU are one request, so that a partly changed schedule is never in
/// force.
std::vector<Request> requests_of(const ChangePlan& plan);
/// "resize gpu0/vf2 'b'"
std::string describe(const Step& step);
std::string describe(const Request& request);
/// True if the VFs of `request` exist with empty VRAM afterwards.
bool empties(const Request& request);
/// True if a later attempt may succeed, because the GPU did not answer or the disk refused.
bool is_temporary(ErrorId id);
/// True if the error says that the GPU does not answer.
bool is_loss(ErrorId id);
/// True if `request` only changes settings: one record, nothing on the device.
bool is_setting(const Request& request);

/// When a request ended. AtOnce: when the GPU's thread answered. Afterwards: when the device had
/// finished. Late: when kTimeout was over; the request may still complete.
enum class Ended { AtOnce, Afterwards, Late };
struct StepEnd {
    Result<> result;
    Ended ended = Ended::AtOnce;
};

class StepExecutor {
public:
    /// Limit of a resize or destroy, which waits for a scrub of all VRAM of the VF.
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
    bool is_awaited_ = false;   ///< true from the GPU thread's answer until the device is done
    std::uint32_t generation_ = 0;
    Nanoseconds deadline_{0};
    std::optional<StepEnd> end_;
};

}  // namespace vgpu::daemon
