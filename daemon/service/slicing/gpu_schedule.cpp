// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/gpu_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace vgpu::daemon {

namespace {

using scheduler::PriorityClass;
using scheduler::TableAdmission;

constexpr std::int64_t kNsPerUs = 1000;
constexpr double kUsPerMs = 1000;
constexpr std::uint64_t kMinQuantumNs = std::uint64_t{scheduler::kMinQuantumUs} * 1000;
constexpr std::uint32_t kAllPpm = scheduler::Cap::kAll;
static_assert(scheduler::Fluid::kPriorityClasses == scheduler::kPriorityClasses);
static_assert(scheduler::kPriorityClasses == VGPU_PF_PRIORITY_CLASSES);

std::size_t priority_class_of(const GpuSchedule::Member& member) {
    return static_cast<std::size_t>(member.qos.priority_class);
}

scheduler::Demand demand_of(const GpuSchedule::Member& member) {
    return {.vf = member.vf, .weight = member.weight, .quantum_us = member.quantum_us};
}

/// `gap_ns` in us. A gap limit that does not fit in 32 bits becomes kAnyGap − 1, because kAnyGap
/// means "no limit".
std::uint32_t gap_us_of(std::int64_t gap_ns) {
    if (gap_ns == scheduler::kNoGapLimit) return scheduler::kAnyGap;
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(gap_ns / kNsPerUs, scheduler::kAnyGap - 1));
}

/// Admits with the switch cost of the default Engine. The measured cost is not part of admission;
/// the planner only shortens slices because of it (make_table()).
Result<TableAdmission> admission_of(const std::vector<GpuSchedule::Member>& members,
                                    std::uint32_t max_gap_ms,
                                    std::span<const std::string> names = {}) {
    std::vector<scheduler::ContractParty> parties;
    for (const GpuSchedule::Member& member : members)
        parties.push_back(
            {.vf = member.vf,
             .contract = contract_of(member.qos, member.weight, member.quantum_us, max_gap_ms)});
    for (std::size_t i = 0; i < names.size(); ++i) parties[i].name = names[i];
    return scheduler::admit_for_table(parties, scheduler::Engine{});
}

/// Number of priority classes with members, at least 1. limits_of() divides the table's entries
/// equally among these classes.
std::uint32_t priority_classes_in(const std::vector<GpuSchedule::Member>& members) {
    std::set<PriorityClass> priority_classes;
    for (const GpuSchedule::Member& member : members)
        priority_classes.insert(member.qos.priority_class);
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, priority_classes.size()));
}

scheduler::Limits limits_of(std::uint32_t max_gap_ms, const TableAdmission& admission,
                            const std::vector<GpuSchedule::Member>& members) {
    return {.max_gap_us = max_gap_ms * 1000,
            .max_entries = VGPU_PF_TABLE_ENTRIES / priority_classes_in(members),
            .extra_us = static_cast<std::uint32_t>(admission.budgets_ns / kNsPerUs),
            .taken = admission.reserved};
}

std::vector<scheduler::Entry> entries_of(const vgpu_pf_run_table& table) {
    std::vector<scheduler::Entry> entries;
    for (std::uint32_t i = 0; i < table.count; ++i)
        entries.push_back({table.entries[i].vf, table.entries[i].quantum_us});
    return entries;
}

/// Appends the plan of one priority class to `plan`. The PF core goes through the entries of each
/// class separately.
void append(scheduler::Plan& plan, scheduler::Plan class_plan) {
    plan.entries.insert(plan.entries.end(), class_plan.entries.begin(), class_plan.entries.end());
    plan.quantum_us = std::max(plan.quantum_us, class_plan.quantum_us);
    plan.cycle_us += class_plan.cycle_us;
    plan.worst_gap_us = std::max(plan.worst_gap_us, class_plan.worst_gap_us);
    plan.worst_lag_ns = std::max(plan.worst_lag_ns, class_plan.worst_lag_ns);
    plan.is_exact = plan.is_exact && class_plan.is_exact;
    plan.corrects = plan.corrects || class_plan.corrects;
}

bool is_same(const vgpu_pf_contract& a, const vgpu_pf_contract& b) {
    return a.budget_ns == b.budget_ns && a.period_ns == b.period_ns && a.ahead == b.ahead &&
           a.burst_ns == b.burst_ns && a.rate_ppm == b.rate_ppm &&
           a.priority_class == b.priority_class && a.flags == b.flags && a.phase_us == b.phase_us &&
           a.preempt_timeout_us == b.preempt_timeout_us;
}

}  // namespace

/// Checks what could make a later table fail: the contracts, then the plan of each priority class.
Result<> GpuSchedule::admit(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                            std::span<const std::string> names) {
    TRY(const TableAdmission admission, admission_of(members, max_gap_ms, names));
    const scheduler::Limits limits = limits_of(max_gap_ms, admission, members);
    for (std::size_t priority_class = 0; priority_class < scheduler::kPriorityClasses;
         ++priority_class) {
        std::vector<scheduler::Demand> desired;
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (priority_class_of(members[i]) != priority_class) continue;
            desired.push_back(demand_of(members[i]));
            desired.back().max_gap_us = gap_us_of(admission.terms[i].table_gap_ns);
            if (!names.empty()) desired.back().name = names[i];
        }
        TRY_VOID(scheduler::check(desired, limits));
    }
    return {};
}

GpuSchedule::GpuSchedule(Image image) : state_(std::move(image)) {
    fit_members();
}

/// Removes VFs first, so that Fluid spreads their lags over the old members and not over new ones.
void GpuSchedule::set_members(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                              Nanoseconds now) {
    if (has_members(members, max_gap_ms)) return;
    for (const Member& member : state_.members) {
        const auto stays = std::any_of(members.begin(), members.end(),
                                       [&](const Member& other) { return other.vf == member.vf; });
        if (stays) continue;
        state_.fluid.leave(member.vf);
        state_.asleep_since.erase(member.vf);
        state_.throttled.erase(member.vf);
        state_.woken.erase(member.vf);
        worst_quanta_.erase(member.vf);
    }
    for (const Member& member : members) {
        const bool is_awake = state_.fluid.is_awake(member.vf);
        const bool changes_class =
            state_.fluid.has(member.vf) &&
            state_.fluid.priority_class_of(member.vf) != priority_class_of(member);
        if (changes_class) state_.fluid.leave(member.vf);
        if (!state_.fluid.has(member.vf)) {
            state_.fluid.join(member.vf, member.weight, priority_class_of(member));
            if (!changes_class || !is_awake) state_.fluid.sleep(member.vf);
            if (!changes_class) state_.asleep_since[member.vf] = now;
        }
        if (is_gang(member)) stop_competing(member.vf, now);
    }
    state_.members = members;
    state_.max_gap_ms = max_gap_ms;
    fit_members();
    state_.is_stale = true;
}

/// A gang VF does not compete for entries, so it counts as asleep.
void GpuSchedule::stop_competing(std::uint32_t vf, Nanoseconds now) {
    state_.fluid.sleep(vf);
    state_.throttled.erase(vf);
    state_.woken.erase(vf);
    state_.asleep_since.try_emplace(vf, now);
}

void GpuSchedule::fit_members() {
    auto admission = admission_of(state_.members, state_.max_gap_ms);
    misfit_.reset();
    if (admission) {
        limits_ = limits_of(state_.max_gap_ms, *admission, state_.members);
        terms_ = std::move(admission->terms);
    } else {
        terms_.clear();
        misfit_ = admission.error();
    }
}

/// A run is reported when it ends, a wake when it happens. state_.woken keeps the wakes until the
/// next run is reported; on_run() then places each wake within that run.
void GpuSchedule::on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end,
                         std::int64_t reserved_ns) {
    if (ns < 0) return;
    const Nanoseconds between = end - Nanoseconds{ns} - std::exchange(state_.last_end, end);
    if (!state_.fluid.has(vf)) return;
    if (is_gang(vf)) {
        account_.add(vf, ns, end.count());
        return;
    }
    if (reserved_ns == 0) record_overhead(vf, ns, between);
    const std::int64_t table_ns = ns - std::clamp<std::int64_t>(reserved_ns, 0, ns);
    // The IDLE event of a VF comes before the RUN event of the run in which the VF ran out of work.
    // So the VF counts as awake during this run, and sleeps after the run.
    const bool is_idle_after = state_.asleep_since.contains(vf) && !state_.woken.contains(vf);
    std::vector<std::pair<Nanoseconds, std::uint32_t>> wakes;
    for (const auto& [woken, at] : state_.woken) wakes.emplace_back(at, woken);
    std::sort(wakes.begin(), wakes.end());
    state_.woken.clear();
    // a throttled VF may still run from its reservation
    if (!state_.throttled.contains(vf)) state_.fluid.wake(vf);
    Nanoseconds from = end - Nanoseconds{table_ns};  // assumes that the reserved part came first
    // Cut the run at each wake, because before the wake fewer VFs shared the ideal service.
    // Otherwise a VF that woke late would be owed a share of the whole run.
    for (const auto& [at, woken] : wakes) {
        const Nanoseconds until = std::clamp(at, from, end);
        if (until > from) state_.fluid.serve(vf, (until - from).count());
        state_.fluid.wake(woken);
        from = until;
    }
    if (end > from) state_.fluid.serve(vf, (end - from).count());
    if (state_.throttled.contains(vf)) state_.fluid.sleep(vf);
    account_.add(vf, ns, end.count());
    record_lags();
    if (is_idle_after)
        state_.fluid.sleep(vf);
    else
        state_.asleep_since.erase(vf);
}

/// Measures the overhead of a slice only if the VF had work all the time, so that the engine was
/// not idle between the previous run and this one.
void GpuSchedule::record_overhead(std::uint32_t vf, std::int64_t ns, Nanoseconds between) {
    constexpr int kPart = 32;  // weight of a new value: 1/32
    if (!state_.fluid.is_awake(vf) || state_.asleep_since.contains(vf) || !state_.woken.empty())
        return;
    if (between < Nanoseconds::zero() || between > kMaxOverhead) return;
    std::int64_t slice_ns = 0;
    for (const scheduler::Entry& entry : state_.plan.entries)
        if (entry.vf == vf) slice_ns = std::max(slice_ns, entry.quantum_us * kNsPerUs);
    const Nanoseconds overrun{slice_ns > 0 ? std::max<std::int64_t>(0, ns - slice_ns) : 0};
    // the run was far longer than a slice: no other VF had work, or the VF hung
    if (overrun > kMaxOverhead) return;
    state_.overhead += (std::min(between + overrun, kMaxOverhead) - state_.overhead) / kPart;
}

/// True if |overhead − planned_overhead| > max(kMin, half of the smaller value). The threshold
/// keeps measurement noise from replacing tables.
bool GpuSchedule::overhead_left_plan() const {
    constexpr Nanoseconds kMin = std::chrono::microseconds(100);
    const auto [less, more] = std::minmax(state_.overhead, state_.planned_overhead);
    return more > less + std::max(kMin, less / 2);
}

void GpuSchedule::record_lags() {
    for (const Member& member : state_.members) {
        if (!state_.fluid.is_awake(member.vf)) continue;
        double& worst = worst_quanta_[member.vf];
        worst = std::max(worst, std::fabs(lag_quanta(member.vf)));
    }
}

void GpuSchedule::on_wake(std::uint32_t vf, Nanoseconds at) {
    if (!state_.fluid.has(vf) || state_.fluid.is_awake(vf) || is_gang(vf)) return;
    state_.woken.try_emplace(vf, at);
    state_.throttled.erase(vf);
    state_.asleep_since.erase(vf);
}

void GpuSchedule::on_idle(std::uint32_t vf, Nanoseconds at) {
    if (!state_.fluid.has(vf) || is_strict(vf)) return;
    state_.woken.erase(vf);
    state_.throttled.erase(vf);
    state_.asleep_since.try_emplace(vf, at);
}

/// Counts the VF as asleep, because a VF is not owed service that its cap forbids. state_.throttled
/// records that the VF has work.
void GpuSchedule::on_throttled(std::uint32_t vf) {
    if (!state_.fluid.has(vf) || is_gang(vf)) return;
    state_.woken.erase(vf);
    state_.asleep_since.erase(vf);
    state_.throttled.insert(vf);
    state_.fluid.sleep(vf);
}

void GpuSchedule::on_inactive_idle(std::uint32_t vf, Nanoseconds at) {
    on_idle(vf, at);
    if (!is_strict(vf)) state_.fluid.sleep(vf);
}

/// The order of lost runs is not known, so their sum is added at once.
void GpuSchedule::on_missed(std::uint32_t vf, std::int64_t ns, std::int64_t reserved_ns) {
    if (!state_.fluid.has(vf) || ns <= 0) return;
    if (is_gang(vf)) {
        account_.add_missed(vf, ns);
        return;
    }
    const std::int64_t table_ns = ns - std::clamp<std::int64_t>(reserved_ns, 0, ns);
    if (table_ns > 0) state_.fluid.serve(vf, table_ns);
    state_.throttled.erase(vf);
    state_.asleep_since.erase(vf);
    state_.woken.erase(vf);
    account_.add_missed(vf, ns);
}

void GpuSchedule::restart() {
    state_.fluid.reset_lags();
    account_.restart_window();
    state_.is_stale = true;
}

bool GpuSchedule::is_asleep(std::uint32_t vf, Nanoseconds now) const {
    const auto since = state_.asleep_since.find(vf);
    return since != state_.asleep_since.end() && now - since->second >= kAsleepAfter;
}

bool GpuSchedule::sleeping_vfs_changed(Nanoseconds now) const {
    return std::any_of(state_.members.begin(), state_.members.end(), [&](const Member& member) {
        if (is_gang(member)) return false;
        const auto planned = state_.planned_asleep.find(member.vf);
        const bool was_asleep = planned != state_.planned_asleep.end() && planned->second;
        return was_asleep ? !state_.asleep_since.contains(member.vf) : is_asleep(member.vf, now);
    });
}

bool GpuSchedule::lag_left_bound() const {
    return std::any_of(state_.members.begin(), state_.members.end(), [&](const Member& member) {
        return state_.fluid.is_awake(member.vf) &&
               std::fabs(lag_quanta(member.vf)) > state_.lag_bound_quanta;
    });
}

/// Must be cheap, because GpuModel calls it in every step().
bool GpuSchedule::needs_table(Nanoseconds now) const {
    if (state_.members.empty() || now - state_.installed_at < state_.interval) return false;
    if (state_.is_stale || sleeping_vfs_changed(now)) return true;
    const Nanoseconds cycle{static_cast<std::int64_t>(state_.plan.cycle_us) * 1000};
    // A second cycle of the table would correct the same lags again.
    if (state_.plan.corrects && now - state_.installed_at >= cycle) return true;
    if (now - state_.installed_at < std::max(cycle, kCheckInterval)) return false;
    return lag_left_bound() || overhead_left_plan();
}

Nanoseconds GpuSchedule::next_check(Nanoseconds now) const {
    // If needs_table(earliest) is true, a new table is due and waits only for the end of the
    // interval.
    const Nanoseconds earliest = state_.installed_at + state_.interval;
    return needs_table(earliest) ? std::max(now, earliest) : now + kCheckInterval;
}

void GpuSchedule::apply_wakes(scheduler::Fluid& fluid) const {
    for (const auto& [vf, at] : state_.woken) fluid.wake(vf);
}

std::vector<scheduler::Demand> GpuSchedule::demands(std::size_t priority_class) const {
    scheduler::Fluid fluid = state_.fluid;
    apply_wakes(fluid);
    std::vector<scheduler::Demand> result;
    for (std::size_t i = 0; i < state_.members.size(); ++i) {
        const Member& member = state_.members[i];
        if (priority_class_of(member) != priority_class) continue;
        scheduler::Demand demand = demand_of(member);
        demand.is_asleep = is_gang(member) || is_asleep(member.vf, state_.now);
        // A VF that cannot run now must not distort the order of the other VFs, so its lag counts
        // as 0.
        demand.lag_ns =
            demand.is_asleep || state_.throttled.contains(member.vf) ? 0 : fluid.lag_ns(member.vf);
        demand.may_wake = state_.asleep_since.contains(member.vf) && !is_gang(member);
        // reserve_of() deducts the debt, so that a VF gains nothing by waking often.
        demand.debt_ns = std::max<std::int64_t>(0, -fluid.lag_ns(member.vf));
        demand.max_gap_us = gap_us_of(terms_[i].table_gap_ns);
        result.push_back(demand);
    }
    return result;
}

bool GpuSchedule::has_priority_classes() const {
    return priority_classes_in(state_.members) > 1;
}

/// The member's contract for the PF core; all zeroes if the member has only a weight and a quantum.
vgpu_pf_contract GpuSchedule::contract(std::size_t member) const {
    const scheduler::VfPolicy& policy = terms_[member].policy;
    const VfQos& qos = state_.members[member].qos;
    vgpu_pf_contract contract{};
    contract.budget_ns = static_cast<std::uint64_t>(policy.reservation.budget_ns);
    contract.period_ns = static_cast<std::uint64_t>(policy.reservation.period_ns);
    contract.ahead = static_cast<std::uint32_t>(policy.reservation.ahead);
    if (policy.cap.is_on()) {
        contract.rate_ppm = policy.cap.rate_ppm;
        // the bucket must hold the reservation's budget and one slice
        contract.burst_ns =
            std::max(static_cast<std::uint64_t>(policy.cap.burst_ns),
                     contract.budget_ns +
                         std::max(static_cast<std::uint64_t>(policy.request_ns), kMinQuantumNs));
    }
    // If there is only one priority class, its number has no effect. Then the number stays 0, so
    // that a VF without other terms has a contract of all zeroes.
    if (has_priority_classes())
        contract.priority_class = static_cast<std::uint32_t>(policy.priority_class);
    if (policy.is_strict) contract.flags = VGPU_PF_CONTRACT_STRICT;
    if (policy.is_gang) contract.flags = VGPU_PF_CONTRACT_GANG;
    contract.phase_us = static_cast<std::uint32_t>(policy.phase_ns / kNsPerUs);
    contract.preempt_timeout_us =
        static_cast<std::uint32_t>(std::llround(qos.preempt_timeout_ms * kUsPerMs));
    return contract;
}

/// A gang VF does not compete for entries, so it gets no weight and no gap limit.
void GpuSchedule::set_terms(vgpu_pf_run_table& table) const {
    for (std::size_t i = 0; i < state_.members.size(); ++i) {
        const std::uint32_t at = state_.members[i].vf - 1;
        table.contracts[at] = contract(i);
        if (is_gang(state_.members[i])) continue;
        table.weights[at] = state_.members[i].weight;
        table.max_gap_us[at] = gap_in_table(i);
    }
}

std::uint32_t GpuSchedule::gap_in_table(std::size_t member) const {
    if (terms_[member].table_gap_ns == scheduler::kNoGapLimit) return 0;
    const double own_ms = state_.members[member].qos.max_gap_ms;
    return static_cast<std::uint32_t>(
        std::llround((own_ms > 0 ? own_ms : static_cast<double>(state_.max_gap_ms)) * kUsPerMs));
}

Result<vgpu_pf_run_table> GpuSchedule::make_table(std::uint64_t generation, Nanoseconds now) {
    state_.now = now;
    if (misfit_) return tl::make_unexpected(*misfit_);
    vgpu_pf_run_table table{};
    table.size = sizeof table;
    table.generation = generation;
    scheduler::Limits limits = limits_;
    // the mean plus a quarter, so that slices with more overhead than the mean keep the gap as well
    limits.overhead_us =
        static_cast<std::uint32_t>((state_.overhead + state_.overhead / 4).count() / kNsPerUs);
    made_overhead_ = state_.overhead;
    scheduler::Plan whole;
    std::map<std::uint32_t, bool> asleep;
    for (std::size_t priority_class = 0; priority_class < scheduler::kPriorityClasses;
         ++priority_class) {
        const std::vector<scheduler::Demand> desired = demands(priority_class);
        // Each priority class has a separate plan, because a lower class runs only while the higher
        // classes have no work. The PF core keeps a cursor for each class.
        TRY(scheduler::Plan plan, scheduler::plan(desired, limits));
        for (const scheduler::Entry& entry : scheduler::reserve_of(plan, desired))
            table.reserve[table.reserve_count++] = {.vf = entry.vf, .quantum_us = entry.quantum_us};
        for (const scheduler::Demand& demand : desired) asleep[demand.vf] = demand.is_asleep;
        append(whole, std::move(plan));
    }
    table.count = static_cast<std::uint32_t>(whole.entries.size());
    for (std::size_t i = 0; i < whole.entries.size(); ++i)
        table.entries[i] = {.vf = whole.entries[i].vf, .quantum_us = whole.entries[i].quantum_us};
    set_terms(table);
    state_.planned_asleep = std::move(asleep);
    made_ = std::move(whole);
    return table;
}

void GpuSchedule::installed(Nanoseconds now) {
    if (made_) state_.plan = *std::move(made_);
    made_.reset();
    // A new weight counts from the first table that contains it.
    for (const Member& member : state_.members) state_.fluid.set_weight(member.vf, member.weight);
    state_.installed_at = now;
    state_.now = now;
    state_.planned_overhead = made_overhead_;
    state_.is_stale = false;
    state_.interval = kMinInterval;
    // The lags within a cycle of this table must not cause the next table.
    state_.lag_bound_quanta =
        static_cast<double>(state_.plan.worst_lag_ns) / quantum_ns() + kLagSlack;
}

void GpuSchedule::refused(Nanoseconds now) {
    made_.reset();
    state_.installed_at = now;
    state_.interval = std::min(state_.interval * 2, kMaxInterval);
    state_.is_stale = true;
}

/// True if the entries of each priority class are fair, there are no other entries, and the table
/// has the contracts, weights and gap limits of all members.
bool GpuSchedule::fits_members(const vgpu_pf_run_table& table) const {
    if (misfit_ || table.count == 0) return false;
    const std::vector<scheduler::Entry> entries = entries_of(table);
    std::size_t found = 0;
    for (std::size_t priority_class = 0; priority_class < scheduler::kPriorityClasses;
         ++priority_class) {
        std::vector<scheduler::Demand> desired;
        std::vector<scheduler::Entry> own;
        for (const Member& member : state_.members)
            if (priority_class_of(member) == priority_class) desired.push_back(demand_of(member));
        for (const scheduler::Entry& entry : entries)
            if (std::any_of(desired.begin(), desired.end(),
                            [&](const auto& demand) { return demand.vf == entry.vf; }))
                own.push_back(entry);
        found += own.size();
        if (!desired.empty() && !scheduler::is_fair_table(own, desired)) return false;
    }
    vgpu_pf_run_table terms{};
    set_terms(terms);
    for (std::size_t i = 0; i < VGPU_PF_MAX_VFS; ++i)
        if (!is_same(table.contracts[i], terms.contracts[i]) ||
            table.weights[i] != terms.weights[i] || table.max_gap_us[i] != terms.max_gap_us[i])
            return false;
    return found == entries.size();
}

void GpuSchedule::adopt(const vgpu_pf_run_table& table, Nanoseconds now) {
    if (!fits_members(table)) return;
    scheduler::Plan plan{.entries = entries_of(table)};
    for (const scheduler::Entry& entry : plan.entries) {
        plan.cycle_us += entry.quantum_us;
        plan.quantum_us = std::max(plan.quantum_us, entry.quantum_us);
    }
    made_ = std::move(plan);
    made_overhead_ = state_.overhead;
    state_.planned_asleep.clear();
    installed(now);
    state_.lag_bound_quanta = kAdoptedLagBound;
}

bool GpuSchedule::is_strict(std::uint32_t vf) const {
    return std::any_of(state_.members.begin(), state_.members.end(), [vf](const Member& member) {
        return member.vf == vf && member.qos.mode == scheduler::SlotMode::Strict;
    });
}

bool GpuSchedule::is_gang(std::uint32_t vf) const {
    return std::any_of(state_.members.begin(), state_.members.end(),
                       [vf](const Member& member) { return member.vf == vf && is_gang(member); });
}

bool GpuSchedule::needs_engine(std::uint32_t vf) const {
    return is_gang(vf) || state_.fluid.is_awake(vf) || state_.throttled.contains(vf) ||
           state_.woken.contains(vf);
}

/// Reservations come first. VFs share the rest by weight, priority class by priority class, up to
/// their caps.
double GpuSchedule::ideal_share(std::uint32_t vf) const {
    struct Competitor {
        std::uint32_t vf;
        double weight, reserved, max;
        bool is_at_cap;
    };
    double left = 1;
    std::array<std::vector<Competitor>, scheduler::kPriorityClasses> priority_classes;
    for (std::size_t i = 0; i < state_.members.size() && i < terms_.size(); ++i) {
        if (!needs_engine(state_.members[i].vf)) continue;
        const scheduler::VfPolicy& policy = terms_[i].policy;
        Competitor one{.vf = state_.members[i].vf,
                       .weight = static_cast<double>(state_.members[i].weight),
                       .reserved = 0,
                       .max = 1,
                       .is_at_cap = false};
        if (policy.reservation.budget_ns > 0)
            one.reserved = static_cast<double>(policy.reservation.budget_ns) /
                           static_cast<double>(policy.reservation.period_ns);
        if (policy.cap.is_on()) one.max = static_cast<double>(policy.cap.rate_ppm) / kAllPpm;
        left -= one.reserved;
        if (is_gang(state_.members[i])) {
            if (one.vf == vf) return one.reserved;
            continue;
        }
        priority_classes.at(priority_class_of(state_.members[i])).push_back(one);
    }
    double share = 0;
    for (std::vector<Competitor>& priority_class : priority_classes) {
        // Water filling: if a VF reaches its cap, the other VFs share the rest by weight. The loop
        // ends, because each round but the last finds one more VF at its cap.
        for (bool is_settled = false; !is_settled;) {
            is_settled = true;
            double weights = 0;
            for (const Competitor& one : priority_class)
                if (!one.is_at_cap) weights += one.weight;
            for (Competitor& one : priority_class) {
                if (one.is_at_cap || one.reserved + left * one.weight / weights < one.max) continue;
                one.is_at_cap = one.max < 1;
                if (!one.is_at_cap) continue;
                left -= std::max(0.0, one.max - one.reserved);
                is_settled = false;
                break;
            }
            if (!is_settled) continue;
            for (const Competitor& one : priority_class)
                if (one.vf == vf)
                    share = one.is_at_cap ? std::max(one.max, one.reserved)
                                          : one.reserved + left * one.weight / weights;
            // VFs below their caps take all that is left, so lower priority classes get nothing.
            if (weights > 0) left = 0;
        }
    }
    return share;
}

double GpuSchedule::quantum_ns() const {
    return state_.plan.quantum_us > 0 ? state_.plan.quantum_us * 1000.0
                                      : scheduler::kDefaultQuantumUs * 1000.0;
}

double GpuSchedule::lag_quanta(std::uint32_t vf) const {
    return static_cast<double>(state_.fluid.lag_ns(vf)) / quantum_ns();
}

double GpuSchedule::worst_lag_quanta(std::uint32_t vf) const {
    const auto worst = worst_quanta_.find(vf);
    return worst == worst_quanta_.end() ? 0.0 : worst->second;
}

}  // namespace vgpu::daemon
