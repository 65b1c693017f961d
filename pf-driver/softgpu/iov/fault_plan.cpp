// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::iov {

namespace {

struct PointRow {
    std::string_view name;
    bool can_be_late;
    bool can_be_wrong;
    bool is_of_pf;    ///< true if the PF reaches the point
    bool is_lasting;  ///< true if the fault lasts until clear(); PF only
};

/// Indexed by FaultPoint.
constexpr std::array<PointRow, 8> kPoints{{{"idle", true, true, false, false},
                                           {"save", true, true, false, false},
                                           {"load", true, true, false, false},
                                           {"run", true, true, false, false},
                                           {"sdma", false, false, false, false},
                                           {"irq", false, false, true, false},
                                           {"flr", false, false, false, false},
                                           {"device", false, false, true, true}}};
/// Indexed by FaultEffect.
constexpr std::array<std::string_view, 3> kEffects{"lost", "late", "wrong"};

const PointRow& row(FaultPoint point) {
    return kPoints[static_cast<std::size_t>(point)];
}

/// True if the point can have the effect. Every point can have Lost, because everything that
/// happens at a point can fail to happen.
bool is_possible(const PlannedFault& fault) {
    const PointRow& point = row(fault.point);
    const std::array<bool, 3> allowed{true, point.can_be_late, point.can_be_wrong};
    return allowed[static_cast<std::size_t>(fault.effect)];
}

}  // namespace

Result<> FaultPlan::add(const PlannedFault& fault) {
    if (!is_possible(fault))
        return fail(EINVAL, fmt::format("fault point \"{}\" cannot be \"{}\"; use \"lost\"",
                                        name(fault.point), name(fault.effect)));
    if (fault.count == 0) return fail(EINVAL, "count of a fault must be at least 1");
    if (row(fault.point).is_lasting && fault.vf != kPf)
        return fail(EINVAL, fmt::format("fault point \"{}\" applies to the PF; leave out \"vf\"",
                                        name(fault.point)));
    if (fault.vf == kPf && !row(fault.point).is_of_pf)
        return fail(EINVAL, fmt::format("fault point \"{}\" applies to a VF; name it with \"vf\"",
                                        name(fault.point)));
    const std::scoped_lock lock(mutex_);
    if (rows_.size() >= kMaxRows)
        return fail(ENOSPC,
                    "the fault plan is full; clear it, or wait until its faults have happened");
    rows_.push_back(fault);
    planned_ = rows_.size();
    if (!row(fault.point).is_lasting) return {};
    ++injected_;
    log::warn("PF: {} {} (injected)", name(fault.point), name(fault.effect));
    return {};
}

/// The relaxed load avoids the mutex if the plan is empty. So a call may miss a row that another
/// thread adds at the same time; a later call finds the row.
std::optional<PlannedFault> FaultPlan::take(VfId vf, FaultPoint point) {
    if (planned_.load(std::memory_order_relaxed) == 0) return std::nullopt;
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(
        rows_, [&](const PlannedFault& r) { return r.vf == vf && r.point == point; });
    if (found == rows_.end()) return std::nullopt;
    const PlannedFault fault = *found;
    if (--found->count == 0) rows_.erase(found);
    planned_ = rows_.size();
    ++injected_;
    log::warn("VF{}: {} {} (injected)", raw(vf), name(point), name(fault.effect));
    return fault;
}

bool FaultPlan::holds(VfId vf, FaultPoint point) {
    if (planned_.load(std::memory_order_relaxed) == 0) return false;
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(
        rows_, [&](const PlannedFault& r) { return r.vf == vf && r.point == point; });
}

void FaultPlan::clear() {
    const std::scoped_lock lock(mutex_);
    rows_.clear();
    planned_ = 0;
}

Result<FaultPoint> FaultPlan::parse_point(std::string_view text) {
    const auto found = std::ranges::find(kPoints, text, &PointRow::name);
    if (found == kPoints.end())
        return fail(EINVAL, fmt::format("fault point \"{}\" does not exist; use idle, save, load, "
                                        "run, sdma, irq, flr or device",
                                        text));
    return static_cast<FaultPoint>(found - kPoints.begin());
}

Result<FaultEffect> FaultPlan::parse_effect(std::string_view text) {
    const auto found = std::ranges::find(kEffects, text);
    if (found == kEffects.end())
        return fail(
            EINVAL,
            fmt::format("fault effect \"{}\" does not exist; use lost, late or wrong", text));
    return static_cast<FaultEffect>(found - kEffects.begin());
}

std::string_view FaultPlan::name(FaultPoint point) {
    return row(point).name;
}

std::string_view FaultPlan::name(FaultEffect effect) {
    return kEffects[static_cast<std::size_t>(effect)];
}

}  // namespace vgpu::softgpu::iov
