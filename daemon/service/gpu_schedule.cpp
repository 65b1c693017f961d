// SPDX-License-Identifier: MIT
#include "daemon/service/gpu_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vgpu::daemon {

namespace {

scheduler::Limits limits_of(std::uint32_t max_gap_ms) {
    return {.max_gap_us = max_gap_ms * 1000, .max_entries = VGPU_PF_TABLE_ENTRIES};
}

scheduler::Claim claim_of(const GpuSchedule::Member& member) {
    return {.vf = member.vf, .weight = member.weight, .quantum_us = member.quantum_us};
}

std::vector<scheduler::Entry> entries_of(const vgpu_pf_run_table& table) {
    std::vector<scheduler::Entry> entries;
    for (std::uint32_t i = 0; i < table.count; ++i)
        entries.push_back({table.entries[i].vf, table.entries[i].quantum_us});
    return entries;
}

}  // namespace

Result<> GpuSchedule::admit(const std::vector<Member>& members, std::uint32_t max_gap_ms) {
    std::vector<scheduler::Claim> wanted;
    for (const Member& member : members) wanted.push_back(claim_of(member));
    TRY_VOID(scheduler::plan(wanted, limits_of(max_gap_ms)));
    return {};
}

void GpuSchedule::set_members(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                              Nanoseconds now) {
    const scheduler::Limits limits = limits_of(max_gap_ms);
    if (members == members_ && limits.max_gap_us == limits_.max_gap_us) return;
    for (const Member& member : members_) {
        const auto stays = std::any_of(members.begin(), members.end(),
                                       [&](const Member& other) { return other.vf == member.vf; });
        if (stays) continue;
        fluid_.leave(member.vf);
        account_.forget(member.vf);
        asleep_since_.erase(member.vf);
        woken_.erase(member.vf);
        worst_quanta_.erase(member.vf);
    }
    for (const Member& member : members) {
        if (!fluid_.has(member.vf)) {
            fluid_.join(member.vf, member.weight);
            fluid_.sleep(member.vf);
            asleep_since_[member.vf] = now;
        }
        fluid_.set_weight(member.vf, member.weight);
    }
    members_ = members;
    limits_ = limits;
    is_stale_ = true;
}

void GpuSchedule::on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end) {
    if (!fluid_.has(vf) || ns < 0) return;
    const bool is_over_idle = asleep_since_.contains(vf) && !woken_.contains(vf);
    std::vector<std::pair<Nanoseconds, std::uint32_t>> wakes;
    for (const auto& [woken, at] : woken_) wakes.emplace_back(at, woken);
    std::sort(wakes.begin(), wakes.end());
    woken_.clear();
    Nanoseconds from = end - Nanoseconds{ns};
    for (const auto& [at, woken] : wakes) {
        const Nanoseconds until = std::clamp(at, from, end);
        fluid_.serve(vf, (until - from).count());
        fluid_.wake(woken);
        from = until;
    }
    fluid_.serve(vf, (end - from).count());
    account_.add(vf, ns, end.count());
    note_lags();
    if (is_over_idle)
        fluid_.sleep(vf);
    else
        asleep_since_.erase(vf);
}

void GpuSchedule::note_lags() {
    for (const Member& member : members_) {
        if (!fluid_.is_awake(member.vf)) continue;
        double& worst = worst_quanta_[member.vf];
        worst = std::max(worst, std::fabs(lag_quanta(member.vf)));
    }
}

void GpuSchedule::on_wake(std::uint32_t vf, Nanoseconds at) {
    if (!fluid_.has(vf) || fluid_.is_awake(vf)) return;
    woken_.try_emplace(vf, at);
    asleep_since_.erase(vf);
}

void GpuSchedule::on_idle(std::uint32_t vf, Nanoseconds at) {
    if (!fluid_.has(vf)) return;
    woken_.erase(vf);
    asleep_since_.try_emplace(vf, at);
}

void GpuSchedule::on_parked_idle(std::uint32_t vf, Nanoseconds at) {
    on_idle(vf, at);
    fluid_.sleep(vf);
}

void GpuSchedule::on_missed(std::uint32_t vf, std::int64_t ns) {
    if (!fluid_.has(vf) || ns <= 0) return;
    fluid_.serve(vf, ns);
    asleep_since_.erase(vf);
    woken_.erase(vf);
    account_.add_missed(vf, ns);
}

void GpuSchedule::restart() {
    fluid_.settle();
    account_.restart_window();
    is_stale_ = true;
}

bool GpuSchedule::is_asleep(std::uint32_t vf, Nanoseconds now) const {
    const auto since = asleep_since_.find(vf);
    return since != asleep_since_.end() && now - since->second >= kAsleepAfter;
}

/// A VF planned as sleeping has work now, or one planned as working has slept for long.
bool GpuSchedule::sleepers_changed(Nanoseconds now) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
        const auto planned = planned_asleep_.find(member.vf);
        const bool was_asleep = planned != planned_asleep_.end() && planned->second;
        return was_asleep ? !asleep_since_.contains(member.vf) : is_asleep(member.vf, now);
    });
}

bool GpuSchedule::lag_left_bound() const {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
        return fluid_.is_awake(member.vf) && std::fabs(lag_quanta(member.vf)) > lag_bound_quanta_;
    });
}

bool GpuSchedule::wants_table(Nanoseconds now) const {
    if (members_.empty() || now - installed_at_ < interval_) return false;
    if (is_stale_ || sleepers_changed(now)) return true;
    const Nanoseconds cycle{static_cast<std::int64_t>(plan_.cycle_us) * 1000};
    if (plan_.corrects && now - installed_at_ >= cycle) return true;
    return now - installed_at_ >= std::max(cycle, kCheckInterval) && lag_left_bound();
}

Nanoseconds GpuSchedule::next_check(Nanoseconds now) const {
    const Nanoseconds earliest = installed_at_ + interval_;
    return wants_table(earliest) ? std::max(now, earliest) : now + kCheckInterval;
}

void GpuSchedule::apply_wakes(scheduler::Fluid& fluid) const {
    for (const auto& [vf, at] : woken_) fluid.wake(vf);
}

std::vector<scheduler::Claim> GpuSchedule::claims() const {
    scheduler::Fluid fluid = fluid_;
    apply_wakes(fluid);
    std::vector<scheduler::Claim> result;
    for (const Member& member : members_) {
        scheduler::Claim claim = claim_of(member);
        claim.is_asleep = is_asleep(member.vf, now_);
        claim.lag_ns = claim.is_asleep ? 0 : fluid.lag_ns(member.vf);
        claim.may_wake = asleep_since_.contains(member.vf);
        claim.debt_ns = std::max<std::int64_t>(0, -fluid.lag_ns(member.vf));
        result.push_back(claim);
    }
    return result;
}

Result<vgpu_pf_run_table> GpuSchedule::make_table(
    std::uint64_t generation, const std::map<std::uint32_t, std::uint64_t>& service_ns,
    Nanoseconds now) {
    now_ = now;
    const std::vector<scheduler::Claim> wanted = claims();
    TRY(scheduler::Plan plan, scheduler::plan(wanted, limits_));
    vgpu_pf_run_table table{};
    table.size = sizeof table;
    table.generation = generation;
    table.flags = VGPU_PF_TABLE_BASED;
    for (const auto& [vf, ns] : service_ns)
        if (vf >= 1 && vf <= VGPU_PF_MAX_VFS) table.planned_service_ns[vf - 1] = ns;
    table.count = static_cast<std::uint32_t>(plan.entries.size());
    for (std::size_t i = 0; i < plan.entries.size(); ++i)
        table.entries[i] = {.vf = plan.entries[i].vf, .quantum_us = plan.entries[i].quantum_us};
    for (const scheduler::Entry& entry : scheduler::reserve_of(plan, wanted))
        table.reserve[table.reserve_count++] = {.vf = entry.vf, .quantum_us = entry.quantum_us};
    planned_asleep_.clear();
    for (const scheduler::Claim& claim : wanted) planned_asleep_[claim.vf] = claim.is_asleep;
    made_ = std::move(plan);
    return table;
}

void GpuSchedule::installed(Nanoseconds now) {
    if (made_) plan_ = *std::move(made_);
    made_.reset();
    installed_at_ = now;
    now_ = now;
    is_stale_ = false;
    interval_ = kMinInterval;
    lag_bound_quanta_ = static_cast<double>(plan_.worst_lag_ns) / quantum_ns() + kLagSlack;
}

void GpuSchedule::refused(Nanoseconds now) {
    made_.reset();
    installed_at_ = now;
    interval_ = std::min(interval_ * 2, kMaxInterval);
    is_stale_ = true;
}

void GpuSchedule::adopt(const vgpu_pf_run_table& table, Nanoseconds now) {
    std::vector<scheduler::Claim> wanted;
    for (const Member& member : members_) wanted.push_back(claim_of(member));
    const std::vector<scheduler::Entry> entries = entries_of(table);
    if (entries.empty() || !scheduler::is_fair_table(entries, wanted)) return;
    scheduler::Plan plan{.entries = entries};
    for (const scheduler::Entry& entry : entries) {
        plan.cycle_us += entry.quantum_us;
        plan.quantum_us = std::max(plan.quantum_us, entry.quantum_us);
    }
    made_ = std::move(plan);
    planned_asleep_.clear();
    installed(now);
    lag_bound_quanta_ = kAdoptedLagBound;
}

double GpuSchedule::quantum_ns() const {
    return plan_.quantum_us > 0 ? plan_.quantum_us * 1000.0 : scheduler::kDefaultQuantumUs * 1000.0;
}

double GpuSchedule::lag_quanta(std::uint32_t vf) const {
    return static_cast<double>(fluid_.lag_ns(vf)) / quantum_ns();
}

double GpuSchedule::worst_lag_quanta(std::uint32_t vf) const {
    const auto worst = worst_quanta_.find(vf);
    return worst == worst_quanta_.end() ? 0.0 : worst->second;
}

}  // namespace vgpu::daemon
