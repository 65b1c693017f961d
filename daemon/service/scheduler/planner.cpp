// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/planner.h"

#include "daemon/service/scheduler/vf_name.h"

#include "daemon/service/scheduler/cycle.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>

namespace vgpu::daemon::scheduler {

namespace {

using Wide = __int128;

constexpr std::uint64_t kUsPerMs = 1000;
constexpr std::uint64_t kSettledEntries = 256;  ///< length aimed at when lags have to be carried
constexpr std::uint64_t kRepayEntries = 32;     ///< the same when many slices have to be paid back
/// Parts that are tried for what a VF gives of its part: as much as the gap limit allows.
constexpr std::array<std::uint64_t, 4> kRepayDivisors{2, 4, 16, 64};
/// Parts of their requests that are tried for slices while lags are repaid: one slice more of
/// somebody can be too long a gap for another, a shorter one is not.
constexpr std::array<std::uint64_t, 3> kRepaySlices{1, 2, 4};
/// Of their requests, the slices of a table that deals with lags where full ones come too late for
/// what turns take.
constexpr std::uint64_t kShorterPart = 7, kShorterParts = 8;
constexpr int kShrinkRounds = 24;
/// Slices do not come quite evenly: a gap is longer than its mean by up to this part.
constexpr std::uint64_t kUnevenness = 4;
/// Lag bounds that are tried for the order, in parts of the longest slice; see Unroller.
constexpr std::int64_t kBoundParts = 8;
constexpr std::int64_t kTightestBound = 4;

std::int64_t magnitude(std::int64_t value) {
    return value < 0 ? -value : value;
}

/// Orders the parts' slices. Without a bound: EEVDF, a part is eligible when it is owed service,
/// and of the eligible the one with the earliest virtual deadline is next. With a bound B: a part
/// is eligible when its slice does not put it more than B ahead, and of the eligible the one that
/// would be B behind first is next; B = 1/2 slice centres every slice on its ideal time, but not
/// every set of weights allows it. Lags are exact: multiplied by the sum of weights, and carried
/// from slice to slice.
/// The virtual deadline is that of EEVDF (Stoica and Abdel-Wahab, TR-95-22); the variant with a
/// bound aims at lags within B and may miss that; best() looks at what came out.
/// `Number` holds a lag times the sum of weights, and that times a weight.
template <typename Number> class Unroller {
public:
    explicit Unroller(std::vector<Part> parts, std::optional<std::int64_t> bound_ns = {})
        : parts_(std::move(parts)), weights_(static_cast<std::int64_t>(weight_sum(parts_))) {
        begin();
        if (bound_ns) bound_ = static_cast<Number>(*bound_ns) * weights_;
    }

    Plan run() {
        while (Part* part = pick()) {
            const std::uint64_t slice_us = part->slice_us(part->next_slice++);
            serve(*part, static_cast<std::int64_t>(slice_us) * kNsPerUs);
            if (part->has_slices()) next_ns_[index_of(*part)] = part->next_ns();
            plan_.entries.push_back({part->claim.vf, static_cast<std::uint32_t>(slice_us)});
            plan_.cycle_us += slice_us;
            plan_.quantum_us = std::max(plan_.quantum_us, static_cast<std::uint32_t>(slice_us));
        }
        plan_.worst_lag_ns = static_cast<std::int64_t>(worst_lag_ / weights_);
        return std::move(plan_);
    }

private:
    /// The lags at the start need not sum to zero exactly (events are measured): the sum is spread
    /// over all by weight.
    void begin() {
        std::int64_t lag_sum_ns = 0;
        for (const Part& part : parts_) lag_sum_ns += part.claim.lag_ns;
        for (const Part& part : parts_) {
            const Number ideal =
                static_cast<Number>(-lag_sum_ns) * static_cast<Number>(part.weight);
            note_lag(lags_.emplace_back(ideal + static_cast<Number>(part.claim.lag_ns) * weights_));
            next_ns_.push_back(part.has_slices() ? part.next_ns() : 0);
        }
    }

    void serve(const Part& served, std::int64_t ns) {
        scaled_lag(served) -= static_cast<Number>(ns) * weights_;
        for (std::size_t i = 0; i < parts_.size(); ++i)
            note_lag(lags_[i] += static_cast<Number>(ns) * static_cast<Number>(parts_[i].weight));
    }

    void note_lag(Number lag) { worst_lag_ = std::max(worst_lag_, lag < 0 ? -lag : lag); }

    [[nodiscard]] std::size_t index_of(const Part& part) const {
        return static_cast<std::size_t>(&part - parts_.data());
    }
    /// Lag times the sum of weights.
    [[nodiscard]] const Number& scaled_lag(const Part& part) const { return lags_[index_of(part)]; }
    [[nodiscard]] Number& scaled_lag(const Part& part) { return lags_[index_of(part)]; }
    [[nodiscard]] Number next_ns(const Part& part) const { return next_ns_[index_of(part)]; }

    [[nodiscard]] bool is_eligible(const Part& part) const {
        const Number others = weights_ - static_cast<Number>(part.weight);
        return bound_ ? scaled_lag(part) - next_ns(part) * others >= -*bound_
                      : scaled_lag(part) >= 0;
    }

    /// Room until the deadline, times the weight: how far the part may still fall behind.
    [[nodiscard]] Number room(const Part& part) const {
        return (bound_ ? *bound_ : next_ns(part) * weights_) - scaled_lag(part);
    }

    /// a's deadline (or, for equal ones, number) comes before b's.
    [[nodiscard]] bool is_earlier(const Part& a, const Part& b) const {
        const Number left = room(a) * static_cast<Number>(b.weight);
        const Number right = room(b) * static_cast<Number>(a.weight);
        return left != right ? left < right : a.claim.vf < b.claim.vf;
    }

    /// The eligible part with the earliest deadline; when none is eligible, the one least ahead.
    Part* pick() {
        Part* best = nullptr;
        Part* least_ahead = nullptr;
        for (Part& part : parts_) {
            if (!part.has_slices()) continue;
            if (is_eligible(part) && (best == nullptr || is_earlier(part, *best))) best = &part;
            if (least_ahead == nullptr || scaled_lag(part) > scaled_lag(*least_ahead))
                least_ahead = &part;
        }
        return best != nullptr ? best : least_ahead;
    }

    std::vector<Part> parts_;
    std::int64_t weights_;
    std::vector<Number> lags_;           ///< of the parts, times the sum of weights
    std::vector<std::int64_t> next_ns_;  ///< of the parts, how long the next slice is
    Number worst_lag_ = 0;               ///< as lags_
    std::optional<Number> bound_;        ///< of the lag, as lags_
    Plan plan_;
};

/// True if no product of Unroller is beyond 63 bits: no lag is more than those at the start and all
/// service of the table together.
bool is_narrow(const std::vector<Part>& parts, std::int64_t bound_ns) {
    constexpr double kMost = 4e18;
    double weights = 0, heaviest = 0, ns = static_cast<double>(bound_ns);
    for (const Part& part : parts) {
        weights += static_cast<double>(part.weight);
        heaviest = std::max(heaviest, static_cast<double>(part.weight));
        ns += static_cast<double>(part.total_us) * static_cast<double>(kNsPerUs) +
              static_cast<double>(magnitude(part.claim.lag_ns));
    }
    return 2 * ns * weights * heaviest < kMost;
}

Plan unrolled(std::vector<Part> parts, std::optional<std::int64_t> bound_ns) {
    if (is_narrow(parts, bound_ns.value_or(0)))
        return Unroller<std::int64_t>(std::move(parts), bound_ns).run();
    return Unroller<Wide>(std::move(parts), bound_ns).run();
}

/// Slices of sleeping VFs, each to be placed after so much of the others' service.
struct Placed {
    std::uint64_t after_us = 0;  ///< of the order without sleepers
    Entry entry;
};

/// In the middle of equal parts of the cycle, each VF for itself: whichever of them wakes, its
/// turns come evenly.
std::vector<Placed> spread(const std::vector<Part>& sleepers, std::uint64_t cycle_us) {
    std::vector<Placed> placed;
    for (const Part& part : sleepers)
        for (std::uint64_t i = 0; i < part.slices; ++i)
            placed.push_back(
                {.after_us = (2 * i + 1) * cycle_us / (2 * part.slices),
                 .entry = {part.claim.vf, static_cast<std::uint32_t>(part.slice_us(i))}});
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.after_us < b.after_us; });
    return placed;
}

/// Puts the sleepers' slices between those of `plan`.
/// The sleepers' time comes on top: the PF core passes over them, so the others' order is exact
/// while they sleep.
void merge(Plan& plan, const std::vector<Part>& sleepers) {
    const std::vector<Placed> placed = spread(sleepers, plan.cycle_us);
    std::vector<Entry> merged;
    std::uint64_t at = 0;
    auto next = placed.begin();
    for (const Entry& entry : plan.entries) {
        for (; next != placed.end() && next->after_us <= at; ++next) merged.push_back(next->entry);
        merged.push_back(entry);
        at += entry.quantum_us;
    }
    for (; next != placed.end(); ++next) merged.push_back(next->entry);
    for (const Placed& one : placed) {
        plan.cycle_us += one.entry.quantum_us;
        plan.quantum_us = std::max(plan.quantum_us, one.entry.quantum_us);
    }
    plan.entries = std::move(merged);
}

/// The order of those with work, the others spread over it.
Plan order(const std::vector<Part>& parts, std::optional<std::int64_t> bound_ns) {
    std::vector<Part> awake, asleep;
    for (const Part& part : parts) (part.claim.is_asleep ? asleep : awake).push_back(part);
    if (awake.empty()) return unrolled(parts, bound_ns);
    Plan plan = unrolled(std::move(awake), bound_ns);
    merge(plan, asleep);
    return plan;
}

/// The longest time that a VF is off the engine, the table repeating for ever.
struct Gap {
    std::uint32_t vf = 0;
    std::uint64_t first_start_us = 0, last_end_us = 0;
    std::uint64_t longest_us = 0;
};

/// Gaps of the VFs in the order of their first entries; looked through rather than searched, since
/// a GPU has few VFs.
/// In us of the table's own time, and `turn_us` with each entry, its own included. Reservations
/// come on top (Limits).
std::vector<Gap> gaps_of(const Plan& plan, std::uint32_t turn_us) {
    std::vector<Gap> gaps;
    std::uint64_t at = 0;
    for (const Entry& entry : plan.entries) {
        auto gap = std::ranges::find(gaps, entry.vf, &Gap::vf);
        if (gap == gaps.end())
            gap = gaps.insert(gap, {.vf = entry.vf, .first_start_us = at});
        else
            gap->longest_us = std::max(gap->longest_us, at - gap->last_end_us);
        at += entry.quantum_us;
        gap->last_end_us = at;
        at += turn_us;
    }
    for (Gap& gap : gaps)
        gap.longest_us = std::max(gap.longest_us, gap.first_start_us + at - gap.last_end_us);
    return gaps;
}

std::uint64_t gap_limit_of(const Claim& claim, const Limits& limits) {
    return claim.max_gap_us > 0 ? claim.max_gap_us : limits.max_gap_us;
}

/// The longest gap of a table, of what its VF allows; more than 1: too long. So is a table with
/// more entries than there may be: what is paid back may need more slices than its cycle has room
/// for.
double strain_of(const Plan& plan, const std::vector<Part>& parts, const Limits& limits) {
    if (plan.entries.size() > limits.max_entries) return HUGE_VAL;
    const auto gaps = gaps_of(plan, limits.turn_us);
    double strain = 0;
    for (const Part& part : parts) {
        const auto gap = std::ranges::find(gaps, part.claim.vf, &Gap::vf);
        if (gap == gaps.end()) continue;
        strain = std::max(strain, static_cast<double>(gap->longest_us) /
                                      static_cast<double>(gap_limit_of(part.claim, limits)));
    }
    return strain;
}

/// `table_us` of the table's time as the time that passes.
double real_us(std::uint64_t table_us, const Limits& limits) {
    return static_cast<double>(table_us + limits.extra_us) / (1 - limits.taken);
}

std::uint64_t real_ms(std::uint64_t table_us, const Limits& limits) {
    return ceil_div(static_cast<std::uint64_t>(real_us(table_us, limits)), kUsPerMs);
}

bool has_lag(const std::vector<Part>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [](const Part& part) { return part.claim.lag_ns != 0; });
}

enum class Lags : std::uint8_t {
    Carry,    ///< the cycle ends at the lags it starts from
    PayBack,  ///< it pays a slice of them
    Repay,    ///< it pays many slices; the order is that of a cycle without lags
};

/// How a table deals with the lags it starts from.
struct Way {
    Lags lags = Lags::Carry;
    std::uint64_t divisor = 1;  ///< Repay: the part of a VF's part that it gives at most
};

/// One cycle for the requests as they are. Lags make it several hyperperiods long, so that most of
/// the table runs with the lags paid.
Plan unroll(std::vector<Part> parts, const Limits& limits, Way way,
            std::optional<std::int64_t> bound_ns = {}) {
    std::uint64_t cycle_us = cycle_of(parts, limits.max_entries);
    if (has_lag(parts)) {
        const std::uint64_t aim = std::min<std::uint64_t>(
            limits.max_entries / 2, way.lags == Lags::Repay ? kRepayEntries : kSettledEntries);
        cycle_us *= std::max<std::uint64_t>(1, aim / entries_for(parts, cycle_us));
    }
    const bool is_exact = set_totals(parts, cycle_us);
    if (way.lags == Lags::Repay) repay(parts, way.divisor);
    const bool corrects =
        way.lags == Lags::Repay || (way.lags == Lags::PayBack && add_corrections(parts));
    Plan plan = order(parts, bound_ns);
    plan.is_exact = is_exact && !corrects;
    plan.corrects = corrects;
    for (const Gap& gap : gaps_of(plan, 0))
        plan.worst_gap_us = std::max(plan.worst_gap_us, gap.longest_us);
    return plan;
}

/// Of the orders that keep the gap limit, the one with the smallest lags; if none keeps it, EEVDF.
/// The bound is tried from the tightest up, in eighths of the longest slice; EEVDF, whose bound is
/// one slice for any weights, is what is left if none of them is better.
Plan best(const std::vector<Part>& parts, const Limits& limits, Way way) {
    Plan chosen = unroll(parts, limits, way);
    double strain = strain_of(chosen, parts, limits);
    const std::int64_t slice_ns = std::int64_t{chosen.quantum_us} * kNsPerUs;
    for (std::int64_t eighths = kTightestBound; eighths <= kBoundParts; ++eighths) {
        Plan plan = unroll(parts, limits, way, slice_ns * eighths / kBoundParts);
        const double strain_here = strain_of(plan, parts, limits);
        if (strain_here > std::max(1.0, strain) || plan.worst_lag_ns >= chosen.worst_lag_ns)
            continue;
        chosen = std::move(plan);
        strain = strain_here;
    }
    return chosen;
}

std::vector<Part> without_lags(std::vector<Part> parts) {
    for (Part& part : parts) part.claim.lag_ns = 0;
    return parts;
}

/// The largest lag of those with work.
std::int64_t largest_lag_ns(const std::vector<Part>& parts) {
    std::int64_t largest = 0;
    for (const Part& part : parts) largest = std::max(largest, magnitude(part.claim.lag_ns));
    return largest;
}

struct Ratio {
    std::uint64_t part = 1, whole = 1;
};

std::vector<Part> with_slices_of(std::vector<Part> parts, Ratio ratio) {
    for (Part& part : parts)
        part.request_us =
            std::max<std::uint64_t>(kMinQuantumUs, part.request_us * ratio.part / ratio.whole);
    return parts;
}

bool owes_slices(const std::vector<Part>& parts) {
    return std::any_of(parts.begin(), parts.end(), [](const Part& part) {
        return magnitude(part.claim.lag_ns) > std::int64_t{part.claim.quantum_us} * kNsPerUs;
    });
}

/// Shortens the requests of the VFs that wait too long; false if none can be shortened.
/// In proportion to what is too much, and by at least a 64th, so that it ends.
bool shrink(std::vector<Part>& parts, const Plan& plan, const Limits& limits) {
    bool did = false;
    for (const Gap& gap : gaps_of(plan, limits.turn_us)) {
        const auto part =
            std::ranges::find(parts, gap.vf, [](const Part& p) { return p.claim.vf; });
        const std::uint64_t limit_us = gap_limit_of(part->claim, limits);
        if (gap.longest_us <= limit_us) continue;
        const std::uint64_t shorter = std::max<std::uint64_t>(
            kMinQuantumUs, std::min(part->request_us * limit_us / gap.longest_us,
                                    part->request_us - part->request_us / 64));
        did = did || shorter < part->request_us;
        part->request_us = shorter;
    }
    return did;
}

/// Requests that keep the gap limit: first the waiting VFs' own slices shrink, then everybody's.
/// The plan that results carries no lags.
/// Own slices first: a VF with a short gap limit then costs nobody else longer slices. Halving the
/// longest for everybody is the last resort.
Result<std::vector<Part>> fit_gap(std::vector<Part> parts, const Limits& limits) {
    parts = without_lags(std::move(parts));
    std::uint64_t cap = 0;
    for (const Part& part : parts) cap = std::max(cap, part.request_us);
    double best_strain = HUGE_VAL;
    for (; cap >= kMinQuantumUs; cap /= 2) {
        std::vector<Part> attempt = parts;
        for (Part& part : attempt) part.request_us = std::min(part.request_us, cap);
        for (int round = 0; round < kShrinkRounds; ++round) {
            const Plan plan = unroll(attempt, limits, {Lags::Carry});
            const double strain = strain_of(plan, attempt, limits);
            if (strain <= 1) return attempt;
            best_strain = std::min(best_strain, strain);
            if (!shrink(attempt, plan, limits)) break;
        }
    }
    std::uint64_t least_us = UINT64_MAX;
    for (const Part& part : parts) least_us = std::min(least_us, gap_limit_of(part.claim, limits));
    return fail(
        ErrorId::NoSchedule,
        fmt::format("with these weights a VF would be off the engine for {:.1f} ms; "
                    "max_gap_ms is {:.1f}",
                    real_us(static_cast<std::uint64_t>(best_strain * static_cast<double>(least_us)),
                            limits) /
                        1000.0,
                    real_us(least_us, limits) / 1000.0));
}

/// Refuses a weight so small that the shortest slice would come too rarely, and names what works.
Result<> admit(const std::vector<Part>& parts, const Limits& limits) {
    std::uint64_t sum = 0;
    for (const Part& part : parts) sum += part.claim.weight;
    for (const Part& part : parts) {
        const std::uint64_t weight = part.claim.weight;
        const std::uint64_t gap_us = kMinQuantumUs * (sum - weight) / weight;
        const std::uint64_t limit_us = gap_limit_of(part.claim, limits);
        if (gap_us <= limit_us) continue;
        const std::uint64_t fits = ceil_div(kMinQuantumUs * (sum - weight), limit_us);
        return fail(
            ErrorId::NoSchedule,
            fmt::format("{} with weight {} of {} would be off the engine for {} ms even "
                        "with slices of {} us; max_gap_ms is {}: weight {} or max_gap_ms {} "
                        "would fit",
                        called(part.claim.vf, part.claim.name), weight, sum,
                        real_ms(gap_us, limits), kMinQuantumUs,
                        std::llround(real_us(limit_us, limits) / kUsPerMs), fits,
                        real_ms(gap_us + gap_us / kUnevenness, limits)));
    }
    return {};
}

/// What plan() begins with, and all that it refuses; of more than one claim.
Result<std::vector<Part>> fitting_parts(std::span<const Claim> claims, const Limits& limits) {
    std::vector<Part> parts = parts_of(claims);
    TRY_VOID(admit(parts, limits));
    return fit_gap(std::move(parts), limits);
}

Plan single(const Claim& claim) {
    return {.entries = {{claim.vf, claim.quantum_us}},
            .quantum_us = claim.quantum_us,
            .cycle_us = claim.quantum_us};
}

}  // namespace

Result<> check(std::span<const Claim> claims, Limits limits) {
    if (claims.size() < 2) return {};
    limits.turn_us = 0;
    TRY_VOID(fitting_parts(claims, limits));
    return {};
}

namespace {

bool keeps_gap(const Plan& plan, const std::vector<Part>& parts, const Limits& limits) {
    return strain_of(plan, parts, limits) <= 1;
}

/// In this order, the first that keeps everybody's gap: the order with the smallest lags that
/// carries the lags there are; one that pays a slice of them.
std::optional<Plan> carry_or_pay(const std::vector<Part>& parts, const Plan& settled,
                                 const Limits& limits) {
    Plan fair = best(parts, limits, {Lags::Carry});
    const std::int64_t slack_ns = std::int64_t{fair.quantum_us} * kNsPerUs / kBoundParts;
    const bool is_kept = keeps_gap(fair, parts, limits);
    if (is_kept && fair.worst_lag_ns <= settled.worst_lag_ns + slack_ns) return fair;
    Plan correcting = best(parts, limits, {Lags::PayBack});
    if (keeps_gap(correcting, parts, limits)) return correcting;
    if (is_kept) return fair;
    return {};
}

/// One that pays many slices: a host stood still, and a slice became as long.
std::optional<Plan> repay_many(const std::vector<Part>& parts, const Limits& limits) {
    for (const std::uint64_t divisor : kRepayDivisors) {
        for (const std::uint64_t slices : kRepaySlices) {
            Plan repaying =
                best(with_slices_of(parts, {1, slices}), limits, {Lags::Repay, divisor});
            repaying.worst_lag_ns += largest_lag_ns(parts);
            if (keeps_gap(repaying, parts, limits)) return repaying;
        }
    }
    return {};
}

}  // namespace

/// If the lags are hopeless, the order as if there were none, which leaves them as they are.
/// fit_gap() plans without lags, so it refuses only what weights and gaps make impossible and never
/// what a stalled host has left behind. What turns take shortens the slices of all tables, and
/// then is no reason against one that deals with lags: the PF core keeps the gap of a turn that
/// comes a little late, and shorter slices for everybody would cost more.
Result<Plan> plan(std::span<const Claim> claims, Limits limits) {
    if (claims.empty()) return Plan{};
    if (claims.size() == 1) return single(claims.front());
    Limits slices_alone = limits;
    slices_alone.turn_us = 0;
    auto fitting = fitting_parts(claims, limits);
    if (!fitting && limits.turn_us > 0) {
        limits = slices_alone;
        fitting = fitting_parts(claims, limits);
    }
    TRY(std::vector<Part> parts, std::move(fitting));
    for (std::size_t i = 0; i < claims.size(); ++i) parts[i].claim.lag_ns = claims[i].lag_ns;
    Plan settled = best(without_lags(parts), limits, {Lags::Carry});
    if (!owes_slices(parts)) {
        if (auto made = carry_or_pay(parts, settled, limits)) return *std::move(made);
        if (limits.turn_us > 0) {
            const auto shorter = with_slices_of(parts, {kShorterPart, kShorterParts});
            if (auto made = carry_or_pay(shorter, settled, limits)) return *std::move(made);
            if (auto made = carry_or_pay(parts, settled, slices_alone)) return *std::move(made);
        }
    }
    if (auto made = repay_many(parts, slices_alone)) return *std::move(made);
    settled.worst_lag_ns += largest_lag_ns(parts);
    return settled;
}

namespace {

/// The longest slice of `vf`, less what it owes.
/// A VF that owes more than a slice gets none.
std::int64_t advance_us(const Plan& plan, const Claim& claim) {
    std::int64_t longest_us = 0;
    for (const Entry& entry : plan.entries)
        if (entry.vf == claim.vf) longest_us = std::max<std::int64_t>(longest_us, entry.quantum_us);
    return std::max<std::int64_t>(0, longest_us - claim.debt_ns / kNsPerUs);
}

/// Part of `sum_us` of advances, in 1/1024, that keeps `claim` within half a slice.
/// If all advances were taken at once, `claim` would be served later by their sum, of which its
/// weight's part is lag: sum * weight / weights <= slice / 2.
std::int64_t bearable_1024ths(const Plan& plan, const Claim& claim, std::int64_t sum_us,
                              std::int64_t weights) {
    const std::int64_t behind = sum_us * claim.weight;  // times the sum of weights
    const std::int64_t bound = std::int64_t{plan.quantum_us} * weights / 2;
    return behind <= bound ? 1024 : 1024 * bound / behind;
}

}  // namespace

std::vector<Entry> reserve_of(const Plan& plan, std::span<const Claim> claims) {
    if (claims.size() < 2) return {};
    std::int64_t weights = 0, sum_us = 0;
    std::map<std::uint32_t, std::int64_t> advances_us;
    for (const Claim& claim : claims) {
        weights += claim.weight;
        if (!claim.may_wake) continue;
        sum_us += advances_us[claim.vf] = advance_us(plan, claim);
    }
    std::int64_t part = 1024;
    for (const Claim& claim : claims) {
        const auto own = advances_us.find(claim.vf);
        const std::int64_t others_us = sum_us - (own == advances_us.end() ? 0 : own->second);
        part = std::min(part, bearable_1024ths(plan, claim, others_us, weights));
    }
    std::vector<Entry> reserve;
    for (const auto& [vf, us] : advances_us)
        if (us * part / 1024 >= kMinQuantumUs)
            reserve.push_back({vf, static_cast<std::uint32_t>(us * part / 1024)});
    return reserve;
}

bool is_fair_table(std::span<const Entry> entries, std::span<const Claim> claims) {
    std::map<std::uint32_t, std::uint64_t> totals;
    std::uint64_t sum_us = 0, weights = 0;
    for (const Entry& entry : entries) {
        totals[entry.vf] += entry.quantum_us;
        sum_us += entry.quantum_us;
    }
    for (const Claim& claim : claims) weights += claim.weight;
    if (totals.size() != claims.size()) return false;
    return std::all_of(claims.begin(), claims.end(), [&](const Claim& claim) {
        return totals[claim.vf] * weights == sum_us * claim.weight;
    });
}

}  // namespace vgpu::daemon::scheduler
