// SPDX-License-Identifier: MIT
#include "daemon/service/slicing/gpu_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace vgpu::daemon {

namespace {

using scheduler::Band;
using scheduler::TableAdmission;

constexpr std::int64_t kNsPerUs = 1000;
constexpr double kUsPerMs = 1000;
constexpr std::uint64_t kNsPerMinQuantum = std::uint64_t{scheduler::kMinQuantumUs} * 1000;
constexpr std::uint32_t kAllPpm = scheduler::Cap::kAll;
static_assert(scheduler::Fluid::kBands == scheduler::kBands);
static_assert(scheduler::kBands == VGPU_PF_BANDS);

std::size_t band_of(const GpuSchedule::Member& member) {
    return static_cast<std::size_t>(member.qos.band);
}

scheduler::Claim claim_of(const GpuSchedule::Member& member) {
    return {.vf = member.vf, .weight = member.weight, .quantum_us = member.quantum_us};
}

/// A limit beyond 32 bits of us never binds, but must not become kAnyGap.
std::uint32_t gap_us_of(std::int64_t gap_ns) {
    if (gap_ns == scheduler::kNoGapLimit) return scheduler::kAnyGap;
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(gap_ns / kNsPerUs, scheduler::kAnyGap - 1));
}

/// With the default Engine: real switch costs are measured and charged, not admitted.
Result<TableAdmission> admission_of(const std::vector<GpuSchedule::Member>& members,
                                    std::uint32_t max_gap_ms,
                                    std::span<const std::string> names = {}) {
    std::vector<scheduler::Party> parties;
    for (const GpuSchedule::Member& member : members)
        parties.push_back(
            {.vf = member.vf,
             .contract = contract_of(member.qos, member.weight, member.quantum_us, max_gap_ms)});
    for (std::size_t i = 0; i < names.size(); ++i) parties[i].name = names[i];
    return scheduler::admit_for_table(parties, scheduler::Engine{});
}

/// Every band with members gets the same number of table entries.
std::uint32_t bands_in(const std::vector<GpuSchedule::Member>& members) {
    std::set<Band> bands;
    for (const GpuSchedule::Member& member : members) bands.insert(member.qos.band);
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, bands.size()));
}

scheduler::Limits limits_of(std::uint32_t max_gap_ms, const TableAdmission& admission,
                            const std::vector<GpuSchedule::Member>& members) {
    return {.max_gap_us = max_gap_ms * 1000,
            .max_entries = VGPU_PF_TABLE_ENTRIES / bands_in(members),
            .extra_us = static_cast<std::uint32_t>(admission.budgets_ns / kNsPerUs),
            .taken = admission.reserved};
}

std::vector<scheduler::Entry> entries_of(const vgpu_pf_run_table& table) {
    std::vector<scheduler::Entry> entries;
    for (std::uint32_t i = 0; i < table.count; ++i)
        entries.push_back({table.entries[i].vf, table.entries[i].quantum_us});
    return entries;
}

/// Appends a band's table: the PF core goes through each band by itself.
void append(scheduler::Plan& plan, scheduler::Plan band) {
    plan.entries.insert(plan.entries.end(), band.entries.begin(), band.entries.end());
    plan.quantum_us = std::max(plan.quantum_us, band.quantum_us);
    plan.cycle_us += band.cycle_us;
    plan.worst_gap_us = std::max(plan.worst_gap_us, band.worst_gap_us);
    plan.worst_lag_ns = std::max(plan.worst_lag_ns, band.worst_lag_ns);
    plan.is_exact = plan.is_exact && band.is_exact;
    plan.corrects = plan.corrects || band.corrects;
}

/// By field, because padding has no meaning.
bool is_same(const vgpu_pf_contract& a, const vgpu_pf_contract& b) {
    return a.budget_ns == b.budget_ns && a.period_ns == b.period_ns && a.ahead == b.ahead &&
           a.burst_ns == b.burst_ns && a.rate_ppm == b.rate_ppm && a.band == b.band &&
           a.flags == b.flags && a.phase_us == b.phase_us &&
           a.preempt_timeout_us == b.preempt_timeout_us;
}

}  // namespace

/// Tries everything that a later table could fail of: contracts, then a plan of each band.
Result<> GpuSchedule::admit(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                            std::span<const std::string> names) {
    TRY(const TableAdmission admission, admission_of(members, max_gap_ms, names));
    const scheduler::Limits limits = limits_of(max_gap_ms, admission, members);
    for (std::size_t band = 0; band < scheduler::kBands; ++band) {
        std::vector<scheduler::Claim> wanted;
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (band_of(members[i]) != band) continue;
            wanted.push_back(claim_of(members[i]));
            wanted.back().max_gap_us = gap_us_of(admission.terms[i].table_gap_ns);
            if (!names.empty()) wanted.back().name = names[i];
        }
        TRY_VOID(scheduler::check(wanted, limits));
    }
    return {};
}

GpuSchedule::GpuSchedule(const Image& image)
    : members_(image.members),
      max_gap_ms_(image.max_gap_ms),
      fluid_(image.fluid),
      plan_(image.plan),
      woken_(image.woken),
      asleep_since_(image.asleep_since),
      held_(image.held),
      planned_asleep_(image.planned_asleep),
      now_(image.now),
      installed_at_(image.installed_at),
      interval_(image.interval),
      lag_bound_quanta_(image.lag_bound_quanta),
      turn_(image.turn),
      planned_turn_(image.planned_turn),
      last_end_(image.last_end),
      is_stale_(image.is_stale) {
    fit_members();
}

GpuSchedule::Image GpuSchedule::image() const {
    return {.members = members_,
            .max_gap_ms = max_gap_ms_,
            .fluid = fluid_.image(),
            .plan = plan_,
            .woken = woken_,
            .asleep_since = asleep_since_,
            .held = held_,
            .planned_asleep = planned_asleep_,
            .now = now_,
            .installed_at = installed_at_,
            .interval = interval_,
            .lag_bound_quanta = lag_bound_quanta_,
            .turn = turn_,
            .planned_turn = planned_turn_,
            .last_end = last_end_,
            .is_stale = is_stale_};
}

/// VFs leave first, so that their lags are spread over the old members, not over new ones.
void GpuSchedule::set_members(const std::vector<Member>& members, std::uint32_t max_gap_ms,
                              Nanoseconds now) {
    if (has_members(members, max_gap_ms)) return;
    for (const Member& member : members_) {
        const auto stays = std::any_of(members.begin(), members.end(),
                                       [&](const Member& other) { return other.vf == member.vf; });
        if (stays) continue;
        fluid_.leave(member.vf);
        // The number may be another VF's later.
        account_.forget(member.vf);
        asleep_since_.erase(member.vf);
        held_.erase(member.vf);
        woken_.erase(member.vf);
        worst_quanta_.erase(member.vf);
    }
    for (const Member& member : members) {
        const bool is_awake = fluid_.is_awake(member.vf);
        const bool moves = fluid_.has(member.vf) && fluid_.band_of(member.vf) != band_of(member);
        if (moves) fluid_.leave(member.vf);
        if (!fluid_.has(member.vf)) {
            fluid_.join(member.vf, member.weight, band_of(member));
            if (!moves || !is_awake) fluid_.sleep(member.vf);
            if (!moves) asleep_since_[member.vf] = now;
        }
        if (is_gang(member)) leave_entries(member.vf, now);
    }
    members_ = members;
    max_gap_ms_ = max_gap_ms;
    fit_members();
    is_stale_ = true;
}

/// A gang VF does not compete for entries: treated as asleep.
void GpuSchedule::leave_entries(std::uint32_t vf, Nanoseconds now) {
    fluid_.sleep(vf);
    held_.erase(vf);
    woken_.erase(vf);
    asleep_since_.try_emplace(vf, now);
}

void GpuSchedule::fit_members() {
    auto admission = admission_of(members_, max_gap_ms_);
    misfit_.reset();
    if (admission) {
        limits_ = limits_of(max_gap_ms_, *admission, members_);
        terms_ = std::move(admission->terms);
    } else {
        terms_.clear();
        misfit_ = admission.error();
    }
}

/// Runs are reported when they end, wakes when they happen. So woken_ keeps wakes until the run is
/// reported, and they are then placed within it.
void GpuSchedule::on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end,
                         std::int64_t reserved_ns) {
    if (ns < 0) return;
    const Nanoseconds between = end - Nanoseconds{ns} - std::exchange(last_end_, end);
    if (!fluid_.has(vf)) return;
    if (is_gang(vf)) {
        account_.add(vf, ns, end.count());
        return;
    }
    if (reserved_ns == 0) note_turn(vf, ns, between);
    const std::int64_t table_ns = ns - std::clamp<std::int64_t>(reserved_ns, 0, ns);
    // IDLE comes before the RUN that it ends: the run counts as work, and the VF sleeps after it.
    const bool is_over_idle = asleep_since_.contains(vf) && !woken_.contains(vf);
    std::vector<std::pair<Nanoseconds, std::uint32_t>> wakes;
    for (const auto& [woken, at] : woken_) wakes.emplace_back(at, woken);
    std::sort(wakes.begin(), wakes.end());
    woken_.clear();
    // a throttled VF may still run by its reservation
    if (!held_.contains(vf)) fluid_.wake(vf);
    Nanoseconds from = end - Nanoseconds{table_ns};
    // Cut the run at each wake, because fewer VFs shared the ideal service before it. Otherwise a
    // VF that woke late would be owed a share of the whole run.
    for (const auto& [at, woken] : wakes) {
        const Nanoseconds until = std::clamp(at, from, end);
        if (until > from) fluid_.serve(vf, (until - from).count());
        fluid_.wake(woken);
        from = until;
    }
    if (end > from) fluid_.serve(vf, (end - from).count());
    if (held_.contains(vf)) fluid_.sleep(vf);
    account_.add(vf, ns, end.count());
    note_lags();
    if (is_over_idle)
        fluid_.sleep(vf);
    else
        asleep_since_.erase(vf);
}

/// Only if the VF had work all the time, so that the engine cannot have been idle in between.
void GpuSchedule::note_turn(std::uint32_t vf, std::int64_t ns, Nanoseconds between) {
    constexpr int kPart = 32;  // weight of a new value: 1/32
    if (!fluid_.is_awake(vf) || asleep_since_.contains(vf) || !woken_.empty()) return;
    if (between < Nanoseconds::zero() || between > kMaxTurn) return;
    std::int64_t slice_ns = 0;
    for (const scheduler::Entry& entry : plan_.entries)
        if (entry.vf == vf) slice_ns = std::max(slice_ns, entry.quantum_us * kNsPerUs);
    const Nanoseconds over{slice_ns > 0 ? std::max<std::int64_t>(0, ns - slice_ns) : 0};
    // not a table's turn: no other VF had work, or the VF hung
    if (over > kMaxTurn) return;
    turn_ += (std::min(between + over, kMaxTurn) - turn_) / kPart;
}

/// Only for large changes: tables are not replaced for measurement noise.
bool GpuSchedule::turns_left_plan() const {
    constexpr Nanoseconds kLeast = std::chrono::microseconds(100);
    const auto [less, more] = std::minmax(turn_, planned_turn_);
    return more > less + std::max(kLeast, less / 2);
}

void GpuSchedule::note_lags() {
    for (const Member& member : members_) {
        if (!fluid_.is_awake(member.vf)) continue;
        double& worst = worst_quanta_[member.vf];
        worst = std::max(worst, std::fabs(lag_quanta(member.vf)));
    }
}

void GpuSchedule::on_wake(std::uint32_t vf, Nanoseconds at) {
    if (!fluid_.has(vf) || fluid_.is_awake(vf) || is_gang(vf)) return;
    woken_.try_emplace(vf, at);
    held_.erase(vf);
    asleep_since_.erase(vf);
}

void GpuSchedule::on_idle(std::uint32_t vf, Nanoseconds at) {
    if (!fluid_.has(vf) || is_strict(vf)) return;
    woken_.erase(vf);
    held_.erase(vf);
    asleep_since_.try_emplace(vf, at);
}

/// Accounted as asleep: the VF is not owed what its cap forbids. held_ keeps that it has work.
void GpuSchedule::on_capped(std::uint32_t vf) {
    if (!fluid_.has(vf) || is_gang(vf)) return;
    woken_.erase(vf);
    asleep_since_.erase(vf);
    held_.insert(vf);
    fluid_.sleep(vf);
}

void GpuSchedule::on_parked_idle(std::uint32_t vf, Nanoseconds at) {
    on_idle(vf, at);
    if (!is_strict(vf)) fluid_.sleep(vf);
}

/// The order of missed runs is not known: their sum is served at once.
void GpuSchedule::on_missed(std::uint32_t vf, std::int64_t ns, std::int64_t reserved_ns) {
    if (!fluid_.has(vf) || ns <= 0) return;
    if (is_gang(vf)) {
        account_.add_missed(vf, ns);
        return;
    }
    const std::int64_t table_ns = ns - std::clamp<std::int64_t>(reserved_ns, 0, ns);
    if (table_ns > 0) fluid_.serve(vf, table_ns);
    held_.erase(vf);
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

bool GpuSchedule::sleepers_changed(Nanoseconds now) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
        if (is_gang(member)) return false;
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

/// Cheap: asked in every turn.
bool GpuSchedule::wants_table(Nanoseconds now) const {
    if (members_.empty() || now - installed_at_ < interval_) return false;
    if (is_stale_ || sleepers_changed(now)) return true;
    const Nanoseconds cycle{static_cast<std::int64_t>(plan_.cycle_us) * 1000};
    // repeated, the table would pay the same lags again
    if (plan_.corrects && now - installed_at_ >= cycle) return true;
    if (now - installed_at_ < std::max(cycle, kCheckInterval)) return false;
    return lag_left_bound() || turns_left_plan();
}

Nanoseconds GpuSchedule::next_check(Nanoseconds now) const {
    // If a table is due already, only the interval delays it.
    const Nanoseconds earliest = installed_at_ + interval_;
    return wants_table(earliest) ? std::max(now, earliest) : now + kCheckInterval;
}

void GpuSchedule::apply_wakes(scheduler::Fluid& fluid) const {
    for (const auto& [vf, at] : woken_) fluid.wake(vf);
}

std::vector<scheduler::Claim> GpuSchedule::claims(std::size_t band) const {
    scheduler::Fluid fluid = fluid_;
    apply_wakes(fluid);
    std::vector<scheduler::Claim> result;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Member& member = members_[i];
        if (band_of(member) != band) continue;
        scheduler::Claim claim = claim_of(member);
        claim.is_asleep = is_gang(member) || is_asleep(member.vf, now_);
        // A VF that cannot run now must not distort the order of the others.
        claim.lag_ns = claim.is_asleep || held_.contains(member.vf) ? 0 : fluid.lag_ns(member.vf);
        claim.may_wake = asleep_since_.contains(member.vf) && !is_gang(member);
        // Debt shortens its advance in the reserve, so that waking often gains nothing.
        claim.debt_ns = std::max<std::int64_t>(0, -fluid.lag_ns(member.vf));
        claim.max_gap_us = gap_us_of(terms_[i].table_gap_ns);
        result.push_back(claim);
    }
    return result;
}

bool GpuSchedule::has_bands() const {
    return bands_in(members_) > 1;
}

/// The member's contract for the PF core; all zeroes if it only has a weight.
vgpu_pf_contract GpuSchedule::contract(std::size_t member) const {
    const scheduler::VfPolicy& policy = terms_[member].policy;
    const VfQos& qos = members_[member].qos;
    vgpu_pf_contract contract{};
    contract.budget_ns = static_cast<std::uint64_t>(policy.reservation.budget_ns);
    contract.period_ns = static_cast<std::uint64_t>(policy.reservation.period_ns);
    contract.ahead = static_cast<std::uint32_t>(policy.reservation.ahead);
    if (policy.cap.is_on()) {
        contract.rate_ppm = policy.cap.rate_ppm;
        // room for a slice next to the reservation's budget
        contract.burst_ns =
            std::max(static_cast<std::uint64_t>(policy.cap.burst_ns),
                     contract.budget_ns +
                         std::max(static_cast<std::uint64_t>(policy.request_ns), kNsPerMinQuantum));
    }
    // With one band its number has no meaning, and must not make contracts differ.
    if (has_bands()) contract.band = static_cast<std::uint32_t>(policy.band);
    if (policy.is_strict) contract.flags = VGPU_PF_CONTRACT_STRICT;
    if (policy.is_gang) contract.flags = VGPU_PF_CONTRACT_GANG;
    contract.phase_us = static_cast<std::uint32_t>(policy.phase_ns / kNsPerUs);
    contract.preempt_timeout_us =
        static_cast<std::uint32_t>(std::llround(qos.preempt_timeout_ms * kUsPerMs));
    return contract;
}

/// A gang competes for nothing: no weight, no gap.
void GpuSchedule::set_terms(vgpu_pf_run_table& table) const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const std::uint32_t at = members_[i].vf - 1;
        table.contracts[at] = contract(i);
        if (is_gang(members_[i])) continue;
        table.weights[at] = members_[i].weight;
        table.max_gap_us[at] = gap_in_table(i);
    }
}

/// 0 if a reservation keeps the gap.
std::uint32_t GpuSchedule::gap_in_table(std::size_t member) const {
    if (terms_[member].table_gap_ns == scheduler::kNoGapLimit) return 0;
    const double own_ms = members_[member].qos.max_gap_ms;
    return static_cast<std::uint32_t>(
        std::llround((own_ms > 0 ? own_ms : static_cast<double>(max_gap_ms_)) * kUsPerMs));
}

Result<vgpu_pf_run_table> GpuSchedule::make_table(std::uint64_t generation, Nanoseconds now) {
    now_ = now;
    if (misfit_) return tl::make_unexpected(*misfit_);
    vgpu_pf_run_table table{};
    table.size = sizeof table;
    table.generation = generation;
    scheduler::Limits limits = limits_;
    // A quarter above the mean, so that also longer turns keep the gap.
    limits.turn_us = static_cast<std::uint32_t>((turn_ + turn_ / 4).count() / kNsPerUs);
    made_turn_ = turn_;
    scheduler::Plan whole;
    std::map<std::uint32_t, bool> asleep;
    for (std::size_t band = 0; band < scheduler::kBands; ++band) {
        const std::vector<scheduler::Claim> wanted = claims(band);
        // Each band is planned by itself: a lower one runs only while the higher ones have no work,
        // and the PF core keeps a cursor for each.
        TRY(scheduler::Plan plan, scheduler::plan(wanted, limits));
        for (const scheduler::Entry& entry : scheduler::reserve_of(plan, wanted))
            table.reserve[table.reserve_count++] = {.vf = entry.vf, .quantum_us = entry.quantum_us};
        for (const scheduler::Claim& claim : wanted) asleep[claim.vf] = claim.is_asleep;
        append(whole, std::move(plan));
    }
    table.count = static_cast<std::uint32_t>(whole.entries.size());
    for (std::size_t i = 0; i < whole.entries.size(); ++i)
        table.entries[i] = {.vf = whole.entries[i].vf, .quantum_us = whole.entries[i].quantum_us};
    set_terms(table);
    planned_asleep_ = std::move(asleep);
    made_ = std::move(whole);
    return table;
}

void GpuSchedule::installed(Nanoseconds now) {
    if (made_) plan_ = *std::move(made_);
    made_.reset();
    // A new weight counts from the table that contains it on.
    for (const Member& member : members_) fluid_.set_weight(member.vf, member.weight);
    installed_at_ = now;
    now_ = now;
    planned_turn_ = made_turn_;
    is_stale_ = false;
    interval_ = kMinInterval;
    // The table's own lags must not cause the next table.
    lag_bound_quanta_ = static_cast<double>(plan_.worst_lag_ns) / quantum_ns() + kLagSlack;
}

void GpuSchedule::refused(Nanoseconds now) {
    made_.reset();
    installed_at_ = now;
    interval_ = std::min(interval_ * 2, kMaxInterval);
    is_stale_ = true;
}

/// Whether each band's entries are fair, no others exist, and all contracts are exactly equal.
bool GpuSchedule::is_kept_by(const vgpu_pf_run_table& table) const {
    if (misfit_ || table.count == 0) return false;
    const std::vector<scheduler::Entry> entries = entries_of(table);
    std::size_t found = 0;
    for (std::size_t band = 0; band < scheduler::kBands; ++band) {
        std::vector<scheduler::Claim> wanted;
        std::vector<scheduler::Entry> own;
        for (const Member& member : members_)
            if (band_of(member) == band) wanted.push_back(claim_of(member));
        for (const scheduler::Entry& entry : entries)
            if (std::any_of(wanted.begin(), wanted.end(),
                            [&](const auto& claim) { return claim.vf == entry.vf; }))
                own.push_back(entry);
        found += own.size();
        if (!wanted.empty() && !scheduler::is_fair_table(own, wanted)) return false;
    }
    vgpu_pf_run_table wanted{};
    set_terms(wanted);
    for (std::size_t i = 0; i < VGPU_PF_MAX_VFS; ++i)
        if (!is_same(table.contracts[i], wanted.contracts[i]) ||
            table.weights[i] != wanted.weights[i] || table.max_gap_us[i] != wanted.max_gap_us[i])
            return false;
    return found == entries.size();
}

void GpuSchedule::adopt(const vgpu_pf_run_table& table, Nanoseconds now) {
    if (!is_kept_by(table)) return;
    scheduler::Plan plan{.entries = entries_of(table)};
    for (const scheduler::Entry& entry : plan.entries) {
        plan.cycle_us += entry.quantum_us;
        plan.quantum_us = std::max(plan.quantum_us, entry.quantum_us);
    }
    made_ = std::move(plan);
    made_turn_ = turn_;
    planned_asleep_.clear();
    installed(now);
    lag_bound_quanta_ = kAdoptedLagBound;
}

bool GpuSchedule::is_strict(std::uint32_t vf) const {
    return std::any_of(members_.begin(), members_.end(), [vf](const Member& member) {
        return member.vf == vf && member.qos.mode == scheduler::SlotMode::Strict;
    });
}

bool GpuSchedule::is_gang(std::uint32_t vf) const {
    return std::any_of(members_.begin(), members_.end(),
                       [vf](const Member& member) { return member.vf == vf && is_gang(member); });
}

bool GpuSchedule::wants_engine(std::uint32_t vf) const {
    return is_gang(vf) || fluid_.is_awake(vf) || held_.contains(vf) || woken_.contains(vf);
}

/// Reservations first; then the rest by weight, band by band, up to the caps.
double GpuSchedule::ideal_share(std::uint32_t vf) const {
    struct One {
        std::uint32_t vf;
        double weight, reserved, most;
        bool is_full;
    };
    double left = 1;
    std::array<std::vector<One>, scheduler::kBands> bands;
    for (std::size_t i = 0; i < members_.size() && i < terms_.size(); ++i) {
        if (!wants_engine(members_[i].vf)) continue;
        const scheduler::VfPolicy& policy = terms_[i].policy;
        One one{.vf = members_[i].vf,
                .weight = static_cast<double>(members_[i].weight),
                .reserved = 0,
                .most = 1,
                .is_full = false};
        if (policy.reservation.budget_ns > 0)
            one.reserved = static_cast<double>(policy.reservation.budget_ns) /
                           static_cast<double>(policy.reservation.period_ns);
        if (policy.cap.is_on()) one.most = static_cast<double>(policy.cap.rate_ppm) / kAllPpm;
        left -= one.reserved;
        if (is_gang(members_[i])) {
            if (one.vf == vf) return one.reserved;
            continue;
        }
        bands.at(band_of(members_[i])).push_back(one);
    }
    double share = 0;
    for (std::vector<One>& band : bands) {
        // Water filling: a VF that reaches its cap leaves the rest to the others by weight.
        // Terminates: each round fills at least one VF.
        for (bool is_settled = false; !is_settled;) {
            is_settled = true;
            double weights = 0;
            for (const One& one : band)
                if (!one.is_full) weights += one.weight;
            for (One& one : band) {
                if (one.is_full || one.reserved + left * one.weight / weights < one.most) continue;
                one.is_full = one.most < 1;
                if (!one.is_full) continue;
                left -= std::max(0.0, one.most - one.reserved);
                is_settled = false;
                break;
            }
            if (!is_settled) continue;
            for (const One& one : band)
                if (one.vf == vf)
                    share = one.is_full ? std::max(one.most, one.reserved)
                                        : one.reserved + left * one.weight / weights;
            // VFs without a cap take all that is left, and lower bands get nothing.
            if (weights > 0) left = 0;
        }
    }
    return share;
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
