// SPDX-License-Identifier: MIT
#include "simulator/planned.h"

#include <algorithm>
#include <utility>

namespace vgpu::simulator {

using daemon::scheduler::Decision;
using daemon::scheduler::HorizonEntry;
using daemon::scheduler::ServiceClass;

namespace {

constexpr std::int64_t kUnlistedSliceNs = 6'000'000;
constexpr std::size_t kDebitPasses = 64;

}  // namespace

void PlannedPolicy::set(std::uint32_t vf, const VfPolicy& policy, std::int64_t at_ns) {
    scheduler_.set(vf, policy, at_ns);
    if (vf >= debit_ns_.size()) {
        debit_ns_.resize(vf + 1);
        reserve_ns_.resize(vf + 1);
        service_ns_.resize(vf + 1);
        is_listed_.resize(vf + 1);
    }
    want_plan(at_ns);
}

void PlannedPolicy::remove(std::uint32_t vf, std::int64_t at_ns) {
    scheduler_.remove(vf, at_ns);
    want_plan(at_ns);
}

void PlannedPolicy::wake(std::uint32_t vf, std::int64_t at_ns) {
    scheduler_.wake(vf, at_ns);
    want_plan(at_ns);
}

void PlannedPolicy::sleep(std::uint32_t vf, std::int64_t at_ns) {
    scheduler_.sleep(vf, at_ns);
    // what it does not need the others get by being passed on to; no table is needed for that
}

Grant PlannedPolicy::next(std::int64_t at_ns) {
    advance(at_ns);
    if (const std::uint32_t vf = reserve_in_need())
        return grant({ServiceClass::Reserved, vf, reserve_ns_[vf]});
    return next_entry(at_ns);
}

void PlannedPolicy::started(std::int64_t at_ns) {
    is_running_ = true;
    started_ns_ = at_ns;
    scheduler_.start(decision_, at_ns);
}

void PlannedPolicy::ended(std::int64_t at_ns) {
    const std::int64_t ran_ns = at_ns - started_ns_;
    is_running_ = false;
    scheduler_.stop(at_ns);
    if (decision_.service == ServiceClass::Reserved) {
        reserve_ns_[decision_.vf] -= ran_ns;
        return advance(at_ns);
    }
    service_ns_[decision_.vf] += ran_ns;
    if (scheduler_.has(decision_.vf) && scheduler_.has_work(decision_.vf))
        // an overrun is a debit; the rest of a slice that was cut is a credit
        debit_ns_[decision_.vf] += ran_ns - decision_.slice_ns;
    advance(at_ns);
}

std::optional<std::int64_t> PlannedPolicy::preempt_at(std::int64_t at_ns) const {
    if (!is_running_ || decision_.service == ServiceClass::Reserved || reserve_in_need() == 0)
        return std::nullopt;
    return std::max(at_ns, started_ns_ + limits_.min_slice_ns);
}

std::optional<std::int64_t> PlannedPolicy::next_event() const {
    std::optional<std::int64_t> next = scheduler_.next_event();
    // a run that is under way is not cut for a table
    if (pending_ && !is_running_ && (!next || pending_->ready_ns < *next))
        next = pending_->ready_ns;
    if (plan_at_ns_ && (!next || *plan_at_ns_ < *next)) next = plan_at_ns_;
    return next;
}

void PlannedPolicy::advance(std::int64_t at_ns) {
    scheduler_.advance(at_ns);
    if (plan_at_ns_ && *plan_at_ns_ <= at_ns) make_plan(at_ns);
    if (pending_ && pending_->ready_ns <= at_ns && !is_running_) take_over(at_ns);
}

bool PlannedPolicy::has_reserve(std::uint32_t vf) const {
    return scheduler_.has(vf) && scheduler_.has_work(vf) && reserve_ns_[vf] >= limits_.min_slice_ns;
}

/// The first VF of the reserve with work and budget; 0: none.
std::uint32_t PlannedPolicy::reserve_in_need() const {
    const auto at = std::find_if(table_.reserve.begin(), table_.reserve.end(),
                                 [&](const HorizonEntry& entry) { return has_reserve(entry.vf); });
    return at == table_.reserve.end() ? 0 : at->vf;
}

void PlannedPolicy::want_plan(std::int64_t at_ns) {
    is_stale_ = is_stale_ || pending_;
    if (is_dead_ || pending_ || plan_at_ns_) return;
    plan_at_ns_ = std::max(at_ns, planned_ns_ + delays_.interval_ns);
    if (*plan_at_ns_ <= at_ns) make_plan(at_ns);
}

void PlannedPolicy::make_plan(std::int64_t at_ns) {
    plan_at_ns_.reset();
    planned_ns_ = at_ns;
    pending_ = Pending{daemon::scheduler::plan_ahead(scheduler_, at_ns, limits_),
                       at_ns + delays_.plan_delay_ns, service_ns_};
    // of the run under way the plan knows what has been received so far
    if (is_running_ && decision_.service == ServiceClass::Proportional)
        pending_->planned_service_ns[decision_.vf] += at_ns - started_ns_;
}

void PlannedPolicy::take_over(std::int64_t at_ns) {
    table_ = std::move(pending_->plan);
    settle_debits(pending_->planned_service_ns);
    pending_.reset();
    cursor_ = 0;
    std::fill(reserve_ns_.begin(), reserve_ns_.end(), 0);
    for (const HorizonEntry& entry : table_.reserve) reserve_ns_[entry.vf] = entry.slice_ns;
    if (std::exchange(is_stale_, false)) want_plan(at_ns);
}

/// Who has received more than its part of what was received since the plan owes it, the others are
/// owed it, as long as they have work.
void PlannedPolicy::settle_debits(const std::vector<std::int64_t>& planned_service_ns) {
    std::vector<std::int64_t> parts_ns(service_ns_.size(), 0);
    std::fill(is_listed_.begin(), is_listed_.end(), false);
    for (const HorizonEntry& entry : table_.entries) {
        parts_ns[entry.vf] += entry.slice_ns;
        is_listed_[entry.vf] = true;
    }
    double received_ns = 0, busy_ns = 0;
    for (std::uint32_t vf = 0; vf < service_ns_.size(); ++vf) {
        const std::int64_t before_ns = vf < planned_service_ns.size() ? planned_service_ns[vf] : 0;
        debit_ns_[vf] = service_ns_[vf] - before_ns;
        received_ns += static_cast<double>(debit_ns_[vf]);
        if (scheduler_.competes(vf)) busy_ns += static_cast<double>(parts_ns[vf]);
    }
    for (std::uint32_t vf = 0; vf < service_ns_.size() && busy_ns > 0; ++vf)
        if (scheduler_.competes(vf))
            debit_ns_[vf] -= static_cast<std::int64_t>(received_ns *
                                                       static_cast<double>(parts_ns[vf]) / busy_ns);
}

/// An entry of the table or, after the last one, a VF that has none; VF 0: nothing here.
HorizonEntry PlannedPolicy::entry_at_cursor() const {
    if (cursor_ < table_.entries.size()) return table_.entries[cursor_];
    const auto vf = static_cast<std::uint32_t>(cursor_ - table_.entries.size());
    if (is_listed_[vf]) return {};
    return {vf, kUnlistedSliceNs, ServiceClass::Proportional};
}

void PlannedPolicy::advance_cursor() {
    if (++cursor_ < table_.entries.size() + is_listed_.size()) return;
    cursor_ = 0;
    for (const HorizonEntry& one : table_.reserve) reserve_ns_[one.vf] = one.slice_ns;
}

Grant PlannedPolicy::grant(const Decision& decision) {
    decision_ = decision;
    return {.vf = decision.vf,
            .slice_ns = decision.slice_ns,
            .is_reserved = decision.service == ServiceClass::Reserved};
}

/// The next turn of a VF with work, less its debit.
Grant PlannedPolicy::next_entry(std::int64_t at_ns) {
    // whoever is deepest in debt has a turn after as many passes as its debit has slices
    const std::size_t positions = table_.entries.size() + is_listed_.size();
    for (std::size_t i = 0; i < positions * kDebitPasses; ++i) {
        const HorizonEntry entry = entry_at_cursor();
        advance_cursor();
        if (2 * cursor_ >= table_.entries.size()) want_plan(at_ns);
        if (!scheduler_.has(entry.vf) || !scheduler_.has_work(entry.vf)) continue;
        const std::int64_t slice_ns = entry.slice_ns - debit_ns_[entry.vf];
        if (slice_ns < limits_.min_slice_ns) {
            debit_ns_[entry.vf] -= entry.slice_ns;
            continue;
        }
        const std::int64_t most_ns = entry.slice_ns + entry.slice_ns / 4;
        debit_ns_[entry.vf] = slice_ns > most_ns ? most_ns - slice_ns : 0;
        return grant({entry.service, entry.vf, std::min(slice_ns, most_ns)});
    }
    return {};
}

}  // namespace vgpu::simulator
