// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/contract.h"

#include "daemon/service/scheduler/vf_name.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

namespace vgpu::daemon::scheduler {

namespace {

constexpr double kNsPerMs = 1e6;
constexpr double kUsPerMs = 1e3;
constexpr std::int64_t kNsPerUs = 1000;
constexpr std::uint32_t kMaxWeight = 10'000;
/// Maximum number of budgets that a VF with latency_ms may take ahead of time. Without budgets
/// ahead, a burst of work would be cut after one budget in each period.
constexpr std::int64_t kMaxAhead = 4;

std::string party_name(const ContractParty& party) {
    return describe_vf(party.vf, party.name);
}

std::int64_t ns_of_ms(double ms) {
    return std::llround(ms * kNsPerMs);
}

double ms_of(double ns) {
    return ns / kNsPerMs;
}

Result<> check_range(const ContractParty& party, std::string_view name, double value, double min,
                     double max) {
    if (std::isfinite(value) && value >= min && value <= max) return {};
    return fail(ErrorId::OutOfRange, fmt::format("{}: {} is {:g}; it must be {:g} to {:g}",
                                                 party_name(party), name, value, min, max));
}

/// Rounds a percentage in a message to two decimals, so that the printed value still fits. 1e-6
/// exceeds the error of the floating-point arithmetic.
double rounded_down(double pct) {
    return std::floor(pct * 100 - 1e-6) / 100;
}
double rounded_up(double pct) {
    return std::ceil(pct * 100 + 1e-6) / 100;
}

/// Longest time that a reservation leaves its VF without the engine. In the worst case, 1 + ahead
/// budgets run in a row from time 0, and the next budget runs as late as possible: it ends at
/// (2 + ahead) · period. The gap before this budget is (2 + ahead) · (period − budget).
std::int64_t longest_gap_ns(const Reservation& reservation) {
    return (2 + reservation.ahead) * (reservation.period_ns - reservation.budget_ns);
}

/// The largest number of budgets ahead, up to kMaxAhead, with which the reservation alone keeps
/// gaps within `gap_ns`. kMaxAhead if no number does: then the run table must keep the gap,
/// whatever the number is.
std::int64_t budgets_ahead(const Reservation& reservation, std::int64_t gap_ns) {
    Reservation tried = reservation;
    tried.ahead = kMaxAhead;
    while (tried.ahead >= 0 && longest_gap_ns(tried) > gap_ns) --tried.ahead;
    return tried.ahead < 0 ? kMaxAhead : tried.ahead;
}

/// The policy of a contract. A bucket holds at least request_ns, the longest slice, so that a full
/// bucket never cuts a slice. phase_ns is a multiple of 1 us, the unit of the uapi.
VfPolicy policy_of(const Contract& contract) {
    VfPolicy policy{.priority_class = contract.priority_class,
                    .weight = contract.weight,
                    .is_strict = contract.mode == SlotMode::Strict,
                    .is_gang = contract.mode == SlotMode::Gang,
                    .phase_ns = std::llround(contract.phase_ms * kUsPerMs) * kNsPerUs};
    policy.request_ns = ns_of_ms(contract.quantum_ms);
    if (contract.min_pct > 0) {
        const double period_ms =
            contract.latency_ms > 0 ? contract.latency_ms : contract.max_gap_ms / 2;
        policy.reservation.period_ns = ns_of_ms(period_ms);
        policy.reservation.budget_ns = ns_of_ms(period_ms * contract.min_pct / 100);
        if (contract.latency_ms > 0 && !policy.is_gang)
            policy.reservation.ahead =
                budgets_ahead(policy.reservation, ns_of_ms(contract.max_gap_ms));
    }
    if (contract.max_pct < 100) {
        policy.cap.rate_ppm = static_cast<std::uint32_t>(std::llround(contract.max_pct * 1e4));
        policy.cap.burst_ns = std::max(ns_of_ms(contract.burst_ms), policy.request_ns);
    }
    return policy;
}

/// Length of one budget (of a gang: one slot) and the two switches around it.
std::int64_t slot_ns(const VfPolicy& policy, const Engine& engine) {
    return policy.reservation.budget_ns + 2 * engine.switch_ns;
}

/// Part of the engine that the reservation takes, switches included.
double reserved_part(const VfPolicy& policy, const Engine& engine) {
    if (policy.reservation.budget_ns == 0) return 0;
    return static_cast<double>(slot_ns(policy, engine)) /
           static_cast<double>(policy.reservation.period_ns);
}

/// Longest time that a reservation waits for work that cannot be preempted: a switch and the
/// shortest run.
std::int64_t blocking_ns(const Engine& engine) {
    return engine.switch_ns + engine.min_run_ns;
}

/// True if the reservation of `other`, if any, can delay that of `policy`. Slots of gangs come
/// before all other reservations, even those with shorter periods.
bool is_before(const VfPolicy& other, const VfPolicy& policy) {
    if (policy.is_gang) return other.is_gang;
    return other.is_gang || other.reservation.period_ns <= policy.reservation.period_ns;
}

/// Part of the engine that is needed by the reservation of `policy`, the reservations that can
/// delay it, and the blocking. The slots of a gang have fixed times, so one period of `policy` may
/// contain up to one slot more than the gang's part of the engine.
double demand_up_to(std::span<const VfPolicy> policies, const VfPolicy& policy,
                    const Engine& engine) {
    double demand = static_cast<double>(blocking_ns(engine)) /
                    static_cast<double>(policy.reservation.period_ns);
    for (const VfPolicy& other : policies) {
        if (!is_before(other, policy)) continue;
        demand += reserved_part(other, engine);
        if (other.is_gang && !policy.is_gang)
            demand += static_cast<double>(slot_ns(other, engine)) /
                      static_cast<double>(policy.reservation.period_ns);
    }
    return demand;
}

/// Checks Baker's sufficient condition for EDF with blocking (contract.h). For every reservation P:
///   Σ slot(j) / period(j) + (blocking + Σ slot(g)) / period(P) ≤ reservable part
/// j: P and the reservations that can delay P; slot: budget + 2 switches; g: all gangs, or none if
/// P is a gang. demand_up_to() computes the left side. The error names the P that breaks the
/// condition, and the min_pct that would fit, if any. Also refuses a budget shorter than the
/// shortest run.
Result<> admit_reservations(std::span<const ContractParty> parties,
                            std::span<const VfPolicy> policies, const Engine& engine) {
    const double max = engine.reservable_ppm / 1e6;
    for (std::size_t i = 0; i < parties.size(); ++i) {
        const VfPolicy& policy = policies[i];
        if (policy.reservation.budget_ns == 0) continue;
        const double period_ms = ms_of(static_cast<double>(policy.reservation.period_ns));
        if (policy.reservation.budget_ns < engine.min_run_ns)
            return fail(ErrorId::NoSchedule,
                        fmt::format("{}: min_pct {:g} of {:g} ms is {:.3f} ms, the shortest run is "
                                    "{:g} ms; min_pct {:.3f} would fit",
                                    party_name(parties[i]), parties[i].contract.min_pct, period_ms,
                                    ms_of(static_cast<double>(policy.reservation.budget_ns)),
                                    ms_of(static_cast<double>(engine.min_run_ns)),
                                    100.0 * static_cast<double>(engine.min_run_ns) /
                                        static_cast<double>(policy.reservation.period_ns)));
        const double demand = demand_up_to(policies, policy, engine);
        if (demand <= max) continue;
        // One percent of min_pct adds exactly 1/100 to the demand.
        const double fits = parties[i].contract.min_pct - (demand - max) * 100;
        return fail(
            ErrorId::NoSchedule,
            fmt::format("{}: min_pct {:g} every {:g} ms does not fit: with the reservations that "
                        "can delay it, two switches of {:g} ms each and {:g} ms of waiting, "
                        "{:.1f} % of the engine are needed and {:g} % can be reserved; {}",
                        party_name(parties[i]), parties[i].contract.min_pct, period_ms,
                        ms_of(static_cast<double>(engine.switch_ns)),
                        ms_of(static_cast<double>(blocking_ns(engine))), demand * 100, max * 100,
                        fits > 0 ? fmt::format("min_pct {:.2f} would fit", rounded_down(fits))
                                 : fmt::format("a period this short does not fit, whatever its "
                                               "min_pct")));
    }
    return {};
}

/// Let g be the greatest common divisor of the periods of `a` and `b`. Modulo g, the offset from a
/// slot of `a` to a slot of `b` is constant, and every offset with this remainder occurs (Bezout).
/// So two slots overlap at some time if and only if the slots overlap modulo g.
bool do_slots_overlap(const VfPolicy& a, const VfPolicy& b, const Engine& engine) {
    const std::int64_t common = std::gcd(a.reservation.period_ns, b.reservation.period_ns);
    // time from `from` to the next `to`, modulo g
    const auto after = [common](std::int64_t from, std::int64_t to) {
        return ((to - from) % common + common) % common;
    };
    return after(a.phase_ns, b.phase_ns) < slot_ns(a, engine) ||
           after(b.phase_ns, a.phase_ns) < slot_ns(b, engine);
}

/// Index of a gang, other than `index`, whose slots overlap the slots of `policy`; none if there
/// is no such gang.
std::optional<std::size_t> overlapping_gang(std::span<const VfPolicy> policies, std::size_t index,
                                            const VfPolicy& policy, const Engine& engine) {
    for (std::size_t i = 0; i < policies.size(); ++i)
        if (i != index && policies[i].is_gang && do_slots_overlap(policies[i], policy, engine))
            return i;
    return {};
}

/// A phase in ms at which the slots of the gang `index` overlap no slot of another gang. Tries only
/// the end of the first slot of each gang; none if no such phase fits.
std::optional<double> phase_that_fits(std::span<const VfPolicy> policies, std::size_t index,
                                      const Engine& engine) {
    VfPolicy moved = policies[index];
    for (const VfPolicy& other : policies) {
        if (!other.is_gang) continue;
        moved.phase_ns = (other.phase_ns + slot_ns(other, engine)) % moved.reservation.period_ns;
        if (!overlapping_gang(policies, index, moved, engine))
            return ms_of(static_cast<double>(moved.phase_ns));
    }
    return {};
}

/// Checks that the slots of gangs do not overlap.
Result<> admit_slots(std::span<const ContractParty> parties, std::span<const VfPolicy> policies,
                     const Engine& engine) {
    for (std::size_t i = 0; i < parties.size(); ++i) {
        if (!policies[i].is_gang) continue;
        const auto other = overlapping_gang(policies.first(i), i, policies[i], engine);
        if (!other) continue;
        const auto fits = phase_that_fits(policies, i, engine);
        return fail(
            ErrorId::NoSchedule,
            fmt::format("{}: its slots (phase_ms {:g} of {:g} ms) overlap those of {}; {}",
                        party_name(parties[i]), parties[i].contract.phase_ms,
                        parties[i].contract.latency_ms, party_name(parties[*other]),
                        fits ? fmt::format("phase_ms {:g} would fit", *fits)
                             : fmt::format("there is no room next to the other gangs; a smaller "
                                           "min_pct or one latency_ms for all makes room")));
    }
    return {};
}

/// The sum of all reservations, which take time from the run table, and the first priority class
/// that has VFs other than gangs. The run table can bound the gaps of only this class, because the
/// other classes wait while this class has work.
class ReservationTotals {
public:
    ReservationTotals(std::span<const VfPolicy> policies, const Engine& engine) {
        for (const VfPolicy& policy : policies) {
            if (!policy.is_gang) first_class_ = std::min(first_class_, policy.priority_class);
            reserved_ += reserved_part(policy, engine);
            if (policy.reservation.budget_ns > 0)
                budgets_ns_ +=
                    static_cast<double>((1 + policy.reservation.ahead) * slot_ns(policy, engine));
        }
    }

    [[nodiscard]] double reserved() const { return reserved_; }
    [[nodiscard]] double budgets_ns() const { return budgets_ns_; }
    [[nodiscard]] bool is_in_first_priority_class(const VfPolicy& policy) const {
        return policy.priority_class == first_class_ && !policy.is_gang;
    }

private:
    PriorityClass first_class_ = PriorityClass::Low;
    double reserved_ = 0;
    double budgets_ns_ = 0;
};

/// The shortest table gap that admission accepts.
constexpr std::int64_t kMinTableGapNs = 1'000'000;

/// Computes TableTerms::table_gap_ns: kNoGapLimit, or max_gap · (1 − reserved part) − all budgets
/// that may run in a row.
Result<std::int64_t> table_gap(const ContractParty& party, const VfPolicy& policy,
                               const ReservationTotals& totals, std::size_t parties,
                               const Engine& engine) {
    const double gap_ns = party.contract.max_gap_ms * kNsPerMs;
    const bool is_reserved = policy.reservation.budget_ns > 0 &&
                             static_cast<double>(longest_gap_ns(policy.reservation)) <= gap_ns;
    if (parties == 1 || policy.is_gang || is_reserved) return kNoGapLimit;
    if (!totals.is_in_first_priority_class(policy))
        return fail(
            ErrorId::NoSchedule,
            fmt::format("{}: higher priority classes may take all of the engine, so "
                        "max_gap_ms {:g} requires a reservation; min_pct {:.2f} would fit",
                        party_name(party), party.contract.max_gap_ms,
                        rounded_up(100 * static_cast<double>(engine.min_run_ns) / (gap_ns / 2))));
    const double left_ns = gap_ns * (1 - totals.reserved()) - totals.budgets_ns();
    if (left_ns >= kMinTableGapNs) return static_cast<std::int64_t>(left_ns);
    const double fits_ns = (kMinTableGapNs + totals.budgets_ns()) / (1 - totals.reserved());
    return fail(ErrorId::NoSchedule,
                fmt::format("{}: reservations take {:.1f} % of the engine and up to {:.1f} ms "
                            "at once, which leaves nothing of max_gap_ms {:g}; max_gap_ms {:.0f} "
                            "would fit",
                            party_name(party), totals.reserved() * 100, ms_of(totals.budgets_ns()),
                            party.contract.max_gap_ms, std::ceil(ms_of(fits_ns))));
}

/// Checks that a gang has min_pct, latency_ms and a phase_ms less than latency_ms, and no cap.
Result<> validate_gang(const ContractParty& party) {
    const Contract& contract = party.contract;
    if (contract.min_pct == 0 || contract.latency_ms == 0)
        return fail(
            ErrorId::OutOfRange,
            fmt::format("{}: mode gang without {}; its slot is min_pct of latency_ms",
                        party_name(party), contract.min_pct == 0 ? "min_pct" : "latency_ms"));
    if (contract.max_pct < 100)
        return fail(ErrorId::OutOfRange, fmt::format("{}: mode gang with max_pct {:g}; a gang gets "
                                                     "only its slots, and min_pct is their size",
                                                     party_name(party), contract.max_pct));
    if (contract.phase_ms >= contract.latency_ms)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: phase_ms {:g} is not within latency_ms {:g}",
                                party_name(party), contract.phase_ms, contract.latency_ms));
    return {};
}

}  // namespace

/// Checks single fields first, so that the later messages name only numbers in their ranges.
Result<> validate(const ContractParty& party) {
    const Contract& contract = party.contract;
    TRY_VOID(check_range(party, "weight", contract.weight, 1, kMaxWeight));
    TRY_VOID(check_range(party, "min_pct", contract.min_pct, 0, 100));
    TRY_VOID(check_range(party, "max_pct", contract.max_pct, 0.01, 100));
    TRY_VOID(check_range(party, "burst_ms", contract.burst_ms, 0, 10'000));
    TRY_VOID(check_range(party, "latency_ms", contract.latency_ms, 0, 10'000));
    TRY_VOID(check_range(party, "phase_ms", contract.phase_ms, 0, 10'000));
    TRY_VOID(check_range(party, "max_gap_ms", contract.max_gap_ms, 1, 60'000));
    TRY_VOID(check_range(party, "quantum_ms", contract.quantum_ms, 0.1, 1000));
    TRY_VOID(check_range(party, "preempt_timeout_ms", contract.preempt_timeout_ms, 0.1, 100'000));
    if (contract.latency_ms > 0 && contract.min_pct == 0)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: latency_ms {:g} without min_pct; only a reserved part of the "
                                "engine has a bounded latency",
                                party_name(party), contract.latency_ms));
    if (contract.phase_ms > 0 && contract.mode != SlotMode::Gang)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: phase_ms {:g} without mode gang; only slots of gangs have "
                                "a phase",
                                party_name(party), contract.phase_ms));
    if (contract.min_pct > contract.max_pct)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: min_pct {:g} is more than max_pct {:g}", party_name(party),
                                contract.min_pct, contract.max_pct));
    if (contract.mode == SlotMode::Gang) TRY_VOID(validate_gang(party));
    const VfPolicy policy = policy_of(contract);
    if (policy.cap.is_on() && policy.reservation.budget_ns > policy.cap.burst_ns)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{}: min_pct {:g} reserves {:g} ms at a time, more than burst_ms "
                                "allows; burst_ms {:g} would fit",
                                party_name(party), contract.min_pct,
                                ms_of(static_cast<double>(policy.reservation.budget_ns)),
                                ms_of(static_cast<double>(policy.reservation.budget_ns))));
    return {};
}

Result<TableAdmission> admit_for_table(std::span<const ContractParty> parties,
                                       const Engine& engine) {
    std::vector<VfPolicy> policies;
    for (const ContractParty& party : parties) {
        TRY_VOID(validate(party));
        policies.push_back(policy_of(party.contract));
    }
    TRY_VOID(admit_reservations(parties, policies, engine));
    TRY_VOID(admit_slots(parties, policies, engine));
    const ReservationTotals totals(policies, engine);
    TableAdmission admission{.terms = {},
                             .reserved = totals.reserved(),
                             .budgets_ns = static_cast<std::int64_t>(totals.budgets_ns())};
    for (std::size_t i = 0; i < parties.size(); ++i) {
        TRY(const std::int64_t gap_ns,
            table_gap(parties[i], policies[i], totals, parties.size(), engine));
        admission.terms.push_back({.policy = policies[i], .table_gap_ns = gap_ns});
    }
    return admission;
}

}  // namespace vgpu::daemon::scheduler
