// SPDX-License-Identifier: MIT
//
// StepExecutor: carries out the requests of a plan, one at a time. A request concerns one GPU: an
// enable, a create, a resize, a destroy, or any number of changes of settings and names. The GPU's
// thread carries out the request. A destroy then ends when vgpud has recorded the scrub, and a
// resize when vgpud has recorded the VF's resources. Runs in the main loop and never waits.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/manager.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// The steps that one request does; at least one.
using Request = std::vector<Step>;

/// The requests of a plan, without Keep steps. Consecutive Set and Rename steps of one GPU are one
/// request, so that a partly changed schedule is never in force. A new VF gets its UUID here, so
/// that a rollback destroys this VF and no other one with its number.
std::vector<Request> requests_of(const ChangePlan& plan);
/// The step as text: "resize gpu0/vf2 'b'".
std::string describe(const Step& step);
/// The request as text: its first step and, if there are more, their number.
std::string describe(const Request& request);
/// True if the request creates or resizes a VF. The VF then has empty VRAM.
bool empties(const Request& request);
/// True if a later attempt may succeed: the error is a loss (is_loss()), or the disk refused.
bool is_temporary(ErrorId id);
/// True if the error says that vgpud cannot use the GPU now.
bool is_loss(ErrorId id);
/// True if `request` only changes settings and names.
bool is_setting(const Request& request);

/// When a request ended.
enum class Ended {
    AtOnce,      ///< with the answer of the GPU's thread
    Afterwards,  ///< after that answer: the device has finished, or the GPU was lost
    Late,        ///< when StepExecutor::kTimeout was over; the request may still complete
};
/// The end of a request: its result, and when it ended.
struct StepEnd {
    Result<> result;
    Ended ended = Ended::AtOnce;
};

class StepExecutor {
public:
    /// Longest wait for the scrub of a resize or destroy.
    static constexpr Nanoseconds kTimeout = std::chrono::seconds(60);

    StepExecutor(Manager& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

    /// Begins `request`. No other request may be under way. Fails with WrongState if another VF has
    /// the number of a step's VF now (GpuModel::check_vf()). Uses force only if a step may need
    /// force, and if `intent` still allows that when the GPU's thread begins the request. A VF that
    /// a rollback recreates gets its owner back, unless the owner's claim has ended.
    void begin(Request request, const ApplyIntent& intent);
    [[nodiscard]] bool is_under_way() const { return step_.has_value(); }
    /// The end of the request; none while the request runs. Returns each end only once.
    std::optional<StepEnd> take_end();

private:
    void on_answer(Result<std::uint32_t> generation);
    [[nodiscard]] std::optional<Result<>> outcome() const;
    [[nodiscard]] Result<> outcome_of_resize(const GpuSnapshot& seen) const;

    Manager& manager_;
    const Clock& clock_;
    std::optional<Step> step_;      ///< first step of the request under way
    bool awaits_device_ = false;    ///< true after the answer, while the device must still finish
    std::uint32_t generation_ = 0;  ///< generation of the VF that a destroy or resize releases
    Nanoseconds deadline_{0};
    std::optional<StepEnd> end_;
};

}  // namespace vgpu::daemon
