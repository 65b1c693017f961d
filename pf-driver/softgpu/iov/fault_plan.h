// SPDX-License-Identifier: MIT
//
// Fault plan: failures that a test orders from the device, because a device that can always be
// stopped cannot show what a hang does (D20). A row says: the next `count` times `vf` comes to
// `point`, `effect` happens. Rows are written through the control socket; every use is logged with
// the word "injected". A device without rows never looks further than one atomic.
//
//   Idle Save Load Run   a world switch step: Lost: it never completes (until FLR); Late: it
//                        completes after `delay`; Wrong: it completes with a wrong status
//   Sdma                 Lost: the VF's copy engines stop making progress and cannot idle
//   Interrupt            Lost: an interrupt to that function (0: the PF) is not delivered
//   Flr                  Lost: an FLR that the PF ordered never ends (until the whole device is
//   reset)
//   Device               Lost, of the PF: its link is down and nobody answers, until the plan is
//                        cleared; then it is there as after a reset of its bus
//
// Any thread.
#pragma once

#include <array>
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

/// In the order of the names the control socket takes.
enum class FaultPoint : std::uint8_t { Idle, Save, Load, Run, Sdma, Interrupt, Flr, Device };
enum class FaultEffect : std::uint8_t { Lost, Late, Wrong };

/// One row of the plan.
struct PlannedFault {
    VfId vf{};
    FaultPoint point = FaultPoint::Idle;
    FaultEffect effect = FaultEffect::Lost;
    /// How often it happens; at least 1. The rows of one VF and point are used up in the order
    /// added.
    std::uint32_t count = 1;
    /// Effect Late only: from the moment the step begins.
    Nanoseconds delay{};
};

class FaultPlan {
public:
    static constexpr std::size_t kMaxRows = 64;

    /// EINVAL if the point cannot have the effect, ENOSPC if the plan is full.
    [[nodiscard]] Result<> add(const PlannedFault& fault);
    /// The fault that happens now, if one is planned; uses it up by one and logs it.
    [[nodiscard]] std::optional<PlannedFault> take(VfId vf, FaultPoint point);
    /// Is a fault that lasts until clear() planned? Uses nothing up.
    [[nodiscard]] bool holds(VfId vf, FaultPoint point);
    /// Also ends what holds() says; steps that are lost already stay lost until a reset.
    void clear();
    /// Faults that have happened; a run whose count is not 0 says nothing about the device itself.
    [[nodiscard]] std::uint64_t injected() const { return injected_.load(); }

    /// EINVAL names the words that exist.
    [[nodiscard]] static Result<FaultPoint> parse_point(std::string_view name);
    [[nodiscard]] static Result<FaultEffect> parse_effect(std::string_view name);
    [[nodiscard]] static std::string_view name(FaultPoint point);
    [[nodiscard]] static std::string_view name(FaultEffect effect);

private:
    std::mutex mutex_;
    std::vector<PlannedFault> rows_;
    /// rows_.size(), for the fast "nothing planned".
    std::atomic<std::size_t> planned_{0};
    std::atomic<std::uint64_t> injected_{0};
};

}  // namespace vgpu::softgpu::iov
