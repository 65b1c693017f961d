// SPDX-License-Identifier: MIT
//
// FaultPlan: failures of the device that a test requests, because a device that always stops in
// time cannot show how software handles a hang. A row of the plan makes `effect` happen the next
// `count` times that `vf` reaches `point`. Rows come through the control socket. Each fault that
// happens is logged with the word "injected". Without rows the only cost is a load of one atomic.
//
//   Idle Save Load Run   a world switch step. Lost: the step does not complete before a reset.
//                        Late: the step completes after `delay`. Wrong: the command ends ABORTED,
//                        and the VF is stalled until a reset
//   Sdma                 Lost: the VF's copy engines stop making progress and cannot idle
//   Interrupt            Lost: one interrupt of the function `vf` (0: the PF) is not delivered
//   Flr                  Lost: an FLR that the PF ordered does not happen; only another FLR or a
//                        device reset helps
//   Device               Lost, PF only, at once and whatever `count` is: the PF's link is down, and
//                        reads give all ones until the plan is cleared; then the PF is as after a
//                        function reset
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
#include "pf-driver/softgpu/base/result.h"

namespace vgpu::softgpu::iov {

/// In the order of the control socket's names (fault_plan.cpp).
enum class FaultPoint : std::uint8_t { Idle, Save, Load, Run, Sdma, Interrupt, Flr, Device };
enum class FaultEffect : std::uint8_t { Lost, Late, Wrong };

/// One row of the plan.
struct PlannedFault {
    VfId vf{};
    FaultPoint point = FaultPoint::Idle;
    FaultEffect effect = FaultEffect::Lost;
    /// The number of times that the fault happens; at least 1. Rows of the same VF and point are
    /// used up in the order in which they were added.
    std::uint32_t count = 1;
    /// Effect Late only: the delay counts from the start of the step.
    Nanoseconds delay{};
};

class FaultPlan {
public:
    static constexpr std::size_t kMaxRows = 64;

    /// EINVAL if the point cannot have the effect, `count` is 0, or a row of Device names a VF;
    /// ENOSPC if the plan is full.
    [[nodiscard]] Result<> add(const PlannedFault& fault);
    /// The planned fault that happens now, if any; counts the row down and logs the fault.
    [[nodiscard]] std::optional<PlannedFault> take(VfId vf, FaultPoint point);
    /// True if a row of this VF and point exists; does not count the row down. For Device, which
    /// lasts until clear().
    [[nodiscard]] bool holds(VfId vf, FaultPoint point);
    /// Removes all rows, so holds() is false. A step that is already lost stays lost until a reset.
    void clear();
    /// The number of faults that have happened. If it is not 0, a test run proves nothing about the
    /// device itself.
    [[nodiscard]] std::uint64_t injected() const { return injected_.load(); }

    /// The message of EINVAL lists the valid words.
    [[nodiscard]] static Result<FaultPoint> parse_point(std::string_view name);
    [[nodiscard]] static Result<FaultEffect> parse_effect(std::string_view name);
    [[nodiscard]] static std::string_view name(FaultPoint point);
    [[nodiscard]] static std::string_view name(FaultEffect effect);

private:
    std::mutex mutex_;
    std::vector<PlannedFault> rows_;
    /// rows_.size(), for the fast path without a plan.
    std::atomic<std::size_t> planned_{0};
    std::atomic<std::uint64_t> injected_{0};
};

}  // namespace vgpu::softgpu::iov
