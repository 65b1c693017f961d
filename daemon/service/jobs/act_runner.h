// SPDX-License-Identifier: MIT
//
// ActRunner: one act of a plan at a time, carried out. An act is what one request of a GPU does: a
// create, a resize, a destroy, or any number of settings of one GPU. It is asked of the GPU's
// thread, and over when the device says so: a resize or destroy when its scrub is recorded. Used by
// ApplyRun and ApplyRecovery, in the main loop; never waits.
#pragma once

#include "daemon/service/config/apply_intent.h"
#include "daemon/service/config/change_plan.h"
#include "daemon/service/manager.h"

#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Steps that are done by one request.
using Act = std::vector<Step>;

/// Settings of one GPU that follow each other are one act: at no moment is half of a new schedule
/// in force.
std::vector<Act> acts_of(const ChangePlan& plan);
/// "resize gpu0/vf2 'b'"
std::string words_for(const Step& step);
std::string words_for(const Act& act);
/// True if the VFs of `act` have come (back) with empty VRAM.
bool empties(const Act& act);
/// A failure of now: the GPU does not answer, or the disk takes nothing.
bool may_pass(ErrorId id);
/// The GPU does not answer.
bool is_loss(ErrorId id);
/// True if `act` changes nothing but settings: one record, and nothing of the device.
bool is_setting(const Act& act);

/// AtOnce: a failure changed nothing. Late: it may still come to its end.
enum class Ended { AtOnce, Afterwards, Late };
struct ActEnd {
    Result<> result;
    Ended ended = Ended::AtOnce;
};

class ActRunner {
public:
    /// A scrub reads and writes all of a VF's VRAM.
    static constexpr Nanoseconds kTimeout = std::chrono::seconds(60);

    ActRunner(Manager& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

    /// Only if none is under way.
    /// Goes over the uses that `intent` forgives when the GPU's thread comes to it; one that has
    /// begun since is refused as it would be without force.
    /// A VF that is made again is its owner's again, unless that claim has ended meanwhile.
    void begin(Act act, const ApplyIntent& intent);
    /// One was begun, and its end was not taken yet.
    [[nodiscard]] bool is_under_way() const { return step_.has_value(); }
    /// The end of the act that is under way, once; nothing if it has not come.
    std::optional<ActEnd> take_end();

private:
    void on_answer(Result<std::uint32_t> generation);
    [[nodiscard]] std::optional<Result<>> outcome() const;
    [[nodiscard]] Result<> outcome_of_resize(const GpuSnapshot& seen) const;

    Manager& manager_;
    const Clock& clock_;
    std::optional<Step> step_;  ///< the first of the act under way
    bool is_awaited_ = false;   ///< asked for, and the device has to end it
    std::uint32_t generation_ = 0;
    Nanoseconds deadline_{0};
    std::optional<ActEnd> end_;
};

}  // namespace vgpu::daemon
