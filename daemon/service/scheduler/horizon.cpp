// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/horizon.h"

#include <algorithm>

namespace vgpu::daemon::scheduler {

namespace {

constexpr std::int64_t kNsPerUs = 1000;

/// Collects decisions as entries of whole microseconds; what is too short waits for the VF's next.
/// Carrying the rest over keeps each VF's sum right: rounding every slice down would starve the VF
/// with the shortest ones.
class Collector {
public:
    Collector(HorizonPlan& plan, const HorizonLimits& limits, std::uint32_t vfs)
        : plan_(plan), limits_(limits), carried_ns_(vfs, 0), is_listed_(vfs, false) {}

    void add(const Decision& decision) {
        std::int64_t& carried_ns = carried_ns_[decision.vf];
        carried_ns += decision.slice_ns;
        if (carried_ns < limits_.min_slice_ns) return;
        const std::int64_t slice_ns =
            std::min(carried_ns / kNsPerUs * kNsPerUs, limits_.max_slice_ns);
        carried_ns -= slice_ns;
        put({decision.vf, slice_ns, decision.service});
    }

    void add_unless_listed(std::uint32_t vf, std::int64_t slice_ns) {
        if (is_listed_[vf]) return;
        put({vf,
             std::clamp(slice_ns / kNsPerUs * kNsPerUs, limits_.min_slice_ns, limits_.max_slice_ns),
             ServiceClass::Proportional});
    }

    [[nodiscard]] bool is_listed(std::uint32_t vf) const { return is_listed_[vf]; }

private:
    void put(const HorizonEntry& entry) {
        is_listed_[entry.vf] = true;
        plan_.entries.push_back(entry);
    }

    HorizonPlan& plan_;
    const HorizonLimits& limits_;
    std::vector<std::int64_t> carried_ns_;
    std::vector<bool> is_listed_;
};

std::vector<std::uint32_t> vfs_of(const Scheduler& scheduler) {
    std::vector<std::uint32_t> vfs;
    for (std::uint32_t vf = 0; vf < scheduler.end_of_vfs(); ++vf)
        if (scheduler.has(vf) && !scheduler.is_capped(vf)) vfs.push_back(vf);
    return vfs;
}

void fill_reserve(HorizonPlan& plan, const Scheduler& scheduler,
                  const std::vector<std::uint32_t>& vfs, std::int64_t at_ns,
                  const HorizonLimits& limits) {
    for (const std::uint32_t vf : vfs) {
        const std::int64_t budget_ns = scheduler.reserved_ns(vf, at_ns) / kNsPerUs * kNsPerUs;
        if (budget_ns >= limits.min_slice_ns)
            plan.reserve.push_back({vf, budget_ns, ServiceClass::Reserved});
    }
    std::stable_sort(plan.reserve.begin(), plan.reserve.end(),
                     [&](const HorizonEntry& a, const HorizonEntry& b) {
                         return scheduler.policy(a.vf).reservation.period_ns <
                                scheduler.policy(b.vf).reservation.period_ns;
                     });
}

}  // namespace

HorizonPlan plan_ahead(Scheduler scheduler, std::int64_t at_ns, const HorizonLimits& limits) {
    HorizonPlan plan;
    // The slice under way ends when the table takes over.
    scheduler.stop(at_ns);
    const std::vector<std::uint32_t> vfs = vfs_of(scheduler);
    fill_reserve(plan, scheduler, vfs, at_ns, limits);
    Collector collector(plan, limits, scheduler.end_of_vfs());
    std::int64_t now_ns = at_ns;
    const auto is_complete = [&] {
        return now_ns - at_ns >= limits.horizon_ns &&
               std::all_of(vfs.begin(), vfs.end(), [&](std::uint32_t vf) {
                   return !scheduler.competes(vf) || collector.is_listed(vf);
               });
    };
    // Room is kept for one entry of everybody: no VF is left out of the table, however long the
    // horizon.
    while (plan.entries.size() + vfs.size() < limits.max_entries && !is_complete()) {
        const Decision decision = scheduler.decide(now_ns);
        if (!decision) break;
        collector.add(decision);
        scheduler.start(decision, now_ns);
        now_ns += decision.slice_ns;
        scheduler.stop(now_ns);
        now_ns += limits.switch_ns;
    }
    plan.length_ns = now_ns - at_ns;
    for (const std::uint32_t vf : vfs)
        collector.add_unless_listed(vf, scheduler.policy(vf).request_ns);
    return plan;
}

}  // namespace vgpu::daemon::scheduler
