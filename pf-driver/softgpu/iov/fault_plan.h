// SPDX-License-Identifier: MIT
//
// FaultPlan: failures of the device that a test requests. A device that always stops in time could
// not show how software handles a hang. A row of the plan makes `effect` happen the next `count`
// times that `vf` reaches `point`. Tests add rows through the control socket. Each fault that
// happens is logged with the word "injected". Without rows the only cost is a load of one atomic.
//
//   Idle Save Load Run   a step of a world switch; Load is also the point of INIT. Lost: until a
//                        reset, the VF is stalled and the command does not end. Late: the step
//                        completes after `delay`. Wrong: the command ends ABORTED, and the VF is
//                        stalled until a reset
//   Sdma                 Lost: until a reset of the VF, its copy engines make no progress, and an
//                        IDLE of the VF is lost
//   Interrupt            Lost: one interrupt of the function `vf` (0: the PF) is not delivered
//   Flr                  Lost: an FLR that the PF ordered does not happen; only another FLR or a
//                        device reset helps
//   Device               Lost, PF only: the PF's link goes down at once, and reads give all ones
//                        until the plan is cleared; `count` has no effect. Afterwards the PF is as
//                        after a function reset
//
// Any thread may call all functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/result.h"

namespace vgpu::softgpu::iov {

/// The order is that of the control socket's names (kPoints and kEffects in fault_plan.cpp).
enum class FaultPoint : std::uint8_t { Idle, Save, Load, Run, Sdma, Interrupt, Flr, Device };
enum class FaultEffect : std::uint8_t { Lost, Late, Wrong };

/// One row of the plan.
struct PlannedFault {
    VfId vf{};  ///< kPf: the PF (points Interrupt and Device only)
    FaultPoint point = FaultPoint::Idle;
    FaultEffect effect = FaultEffect::Lost;
    /// How often the fault happens; at least 1. Rows of the same VF and point apply in the order in
    /// which they were added.
    std::uint32_t count = 1;
    /// Effect Late only: time from the start of the step to its end.
    Nanoseconds delay{};
};

class FaultPlan {
public:
    /// Largest number of rows at the same time.
    static constexpr std::size_t kMaxRows = 64;

    /// EINVAL if the point cannot have the effect, `count` is 0, or the function never reaches the
    /// point: a VF with the point Device, or the PF with a point other than Interrupt and Device.
    /// ENOSPC if the plan is full.
    [[nodiscard]] Result<> add(const PlannedFault& fault);
    /// The planned fault that happens now; nullopt if none. Decrements `count` of the row and logs
    /// the fault.
    [[nodiscard]] std::optional<PlannedFault> take(VfId vf, FaultPoint point);
    /// True if a row of this VF and point exists; does not change `count`. Only for the point
    /// Device, whose fault lasts until clear().
    [[nodiscard]] bool holds(VfId vf, FaultPoint point);
    /// Removes all rows. A step that is already lost stays lost until a reset.
    void clear();
    /// The number of faults that have happened since the device started. If it is not 0, failures
    /// in a test run may come from the plan.
    [[nodiscard]] std::uint64_t injected() const { return injected_.load(); }

    /// EINVAL if the word does not exist; the error's message lists the valid words.
    [[nodiscard]] static Result<FaultPoint> parse_point(std::string_view name);
    [[nodiscard]] static Result<FaultEffect> parse_effect(std::string_view name);
    [[nodiscard]] static std::string_view name(FaultPoint point);
    [[nodiscard]] static std::string_view name(FaultEffect effect);

private:
    PiMutex mutex_;
    std::vector<PlannedFault> rows_;
    /// rows_.size(), for the fast path without a plan.
    std::atomic<std::size_t> planned_{0};
    std::atomic<std::uint64_t> injected_{0};
};

}  // namespace vgpu::softgpu::iov
