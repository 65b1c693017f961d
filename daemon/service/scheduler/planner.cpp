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
/// Desired number of entries of a table with Correction::ManySlices.
constexpr std::uint64_t kManySlicesEntries = 32;
/// Desired number of entries of any other table with lags.
constexpr std::uint64_t kLagEntries = 256;
/// Values of LagMode::divisor that correct_many() tries. It takes the first that keeps all gap
/// limits.
constexpr std::array<std::uint64_t, 4> kCorrectionDivisors{2, 4, 16, 64};
/// Divisors of the slice length that correct_many() tries for each LagMode::divisor. A VF that gets
/// more time gets more slices, which may make the gap of another VF too long. Shorter slices may
/// avoid that.
constexpr std::array<std::uint64_t, 3> kCorrectionSlices{1, 2, 4};
/// plan() shortens all slices to kShorterPart / kShorterParts if no table of full slices, with
/// their overheads, keeps or corrects the lags within the gap limits.
constexpr std::uint64_t kShorterPart = 7, kShorterParts = 8;
/// fit_gap() makes at most this many plans for one limit of the slice length.
constexpr int kShrinkRounds = 24;
/// For messages: because slices are not spaced evenly, the longest gap is taken to be the mean gap
/// plus 1/kUnevenness of the mean.
constexpr std::uint64_t kUnevenness = 4;
/// find_best() tries lag bounds from kTightestBound / kBoundParts of the longest slice to the whole
/// slice, in steps of 1 / kBoundParts.
constexpr std::int64_t kBoundParts = 8;
constexpr std::int64_t kTightestBound = 4;

std::int64_t magnitude(std::int64_t value) {
    return value < 0 ? -value : value;
}

/// Orders the slices of all parts. Without a bound, the order is EEVDF (Stoica and Abdel-Wahab,
/// TR-95-22): among the parts with lag ≥ 0, the part with the earliest virtual deadline is next.
/// With a bound B, a part is eligible if its lag is ≥ −B after its next slice. The next part is the
/// eligible part whose lag would be the first to reach B. B = half a slice centres every slice on
/// its ideal time. Not all weights allow that, so lags may exceed B, and find_best() checks the
/// result. `Number` must hold lag · Σ weight · weight without overflow.
template <typename Number> class SliceSorter {
public:
    explicit SliceSorter(std::vector<Part> parts, std::optional<std::int64_t> bound_ns = {})
        : parts_(std::move(parts)), weights_(static_cast<std::int64_t>(weight_sum(parts_))) {
        begin();
        if (bound_ns) bound_ = static_cast<Number>(*bound_ns) * weights_;
    }

    /// Orders all slices. Call it once.
    Plan run() {
        while (Part* part = pick()) {
            const std::uint64_t slice_us = part->slice_us(part->next_slice++);
            serve(*part, static_cast<std::int64_t>(slice_us) * kNsPerUs);
            if (part->has_slices()) next_ns_[index_of(*part)] = part->next_ns();
            plan_.entries.push_back({part->demand.vf, static_cast<std::uint32_t>(slice_us)});
            plan_.cycle_us += slice_us;
            plan_.quantum_us = std::max(plan_.quantum_us, static_cast<std::uint32_t>(slice_us));
        }
        plan_.worst_lag_ns = static_cast<std::int64_t>(worst_lag_ / weights_);
        return std::move(plan_);
    }

private:
    /// Starts from the measured lags. If their sum is not zero, subtracts the sum from the parts by
    /// weight.
    void begin() {
        std::int64_t lag_sum_ns = 0;
        for (const Part& part : parts_) lag_sum_ns += part.demand.lag_ns;
        for (const Part& part : parts_) {
            const Number ideal =
                static_cast<Number>(-lag_sum_ns) * static_cast<Number>(part.weight);
            record_lag(
                lags_.emplace_back(ideal + static_cast<Number>(part.demand.lag_ns) * weights_));
            next_ns_.push_back(part.has_slices() ? part.next_ns() : 0);
        }
    }

    /// Updates all lags for `ns` of service of `served`.
    void serve(const Part& served, std::int64_t ns) {
        scaled_lag(served) -= static_cast<Number>(ns) * weights_;
        for (std::size_t i = 0; i < parts_.size(); ++i)
            record_lag(lags_[i] += static_cast<Number>(ns) * static_cast<Number>(parts_[i].weight));
    }

    void record_lag(Number lag) { worst_lag_ = std::max(worst_lag_, lag < 0 ? -lag : lag); }

    [[nodiscard]] std::size_t index_of(const Part& part) const {
        return static_cast<std::size_t>(&part - parts_.data());
    }
    /// lag · Σ weight
    [[nodiscard]] const Number& scaled_lag(const Part& part) const { return lags_[index_of(part)]; }
    [[nodiscard]] Number& scaled_lag(const Part& part) { return lags_[index_of(part)]; }
    [[nodiscard]] Number next_ns(const Part& part) const { return next_ns_[index_of(part)]; }

    [[nodiscard]] bool is_eligible(const Part& part) const {
        const Number others = weights_ - static_cast<Number>(part.weight);
        return bound_ ? scaled_lag(part) - next_ns(part) * others >= -*bound_
                      : scaled_lag(part) >= 0;
    }

    /// How much the part's lag may still grow until the part's deadline, in the unit of lags_. The
    /// smaller room / weight is, the earlier is the deadline.
    [[nodiscard]] Number room(const Part& part) const {
        return (bound_ ? *bound_ : next_ns(part) * weights_) - scaled_lag(part);
    }

    /// True if a's deadline is before b's. If they are equal, the lower VF number is first.
    [[nodiscard]] bool is_earlier(const Part& a, const Part& b) const {
        const Number left = room(a) * static_cast<Number>(b.weight);
        const Number right = room(b) * static_cast<Number>(a.weight);
        return left != right ? left < right : a.demand.vf < b.demand.vf;
    }

    /// The eligible part with the earliest deadline or, if no part is eligible, the part with the
    /// largest lag. Null if no part has slices left.
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
    std::vector<Number> lags_;           ///< lag · Σ weight, per part
    std::vector<std::int64_t> next_ns_;  ///< length of the next slice, per part
    Number worst_lag_ = 0;               ///< largest |lag|, in the unit of lags_
    std::optional<Number> bound_;        ///< bound of the lag, in the unit of lags_
    Plan plan_;
};

/// True if SliceSorter's products fit in 63 bits, given |lag| ≤ Σ |start lags| + service of the
/// table.
bool is_narrow(const std::vector<Part>& parts, std::int64_t bound_ns) {
    constexpr double kMax = 4e18;  // well below 2^63 = 9.2e18
    double weights = 0, heaviest = 0, ns = static_cast<double>(bound_ns);
    for (const Part& part : parts) {
        weights += static_cast<double>(part.weight);
        heaviest = std::max(heaviest, static_cast<double>(part.weight));
        ns += static_cast<double>(part.total_us) * static_cast<double>(kNsPerUs) +
              static_cast<double>(magnitude(part.demand.lag_ns));
    }
    return 2 * ns * weights * heaviest < kMax;
}

Plan sort_slices(std::vector<Part> parts, std::optional<std::int64_t> bound_ns) {
    if (is_narrow(parts, bound_ns.value_or(0)))
        return SliceSorter<std::int64_t>(std::move(parts), bound_ns).run();
    return SliceSorter<Wide>(std::move(parts), bound_ns).run();
}

/// A slice of a sleeping VF.
struct Placed {
    std::uint64_t after_us = 0;  ///< position: sum of the awake VFs' slices before this slice
    Entry entry;
};

/// For each sleeper, divides the cycle into as many equal parts as the VF has slices, and places a
/// slice in the middle of each part. So the VF's slices are evenly spaced when it wakes.
std::vector<Placed> spread(const std::vector<Part>& sleepers, std::uint64_t cycle_us) {
    std::vector<Placed> placed;
    for (const Part& part : sleepers)
        for (std::uint64_t i = 0; i < part.slices; ++i)
            placed.push_back(
                {.after_us = (2 * i + 1) * cycle_us / (2 * part.slices),
                 .entry = {part.demand.vf, static_cast<std::uint32_t>(part.slice_us(i))}});
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.after_us < b.after_us; });
    return placed;
}

/// Puts the sleepers' slices between the slices of `plan`. This does not change the order of the
/// awake VFs, and the PF core skips the slices of sleeping VFs.
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

/// Orders the slices of the awake VFs by lag, then spreads the slices of the sleepers. If all VFs
/// sleep, orders all slices by lag.
Plan order(const std::vector<Part>& parts, std::optional<std::int64_t> bound_ns) {
    std::vector<Part> awake, asleep;
    for (const Part& part : parts) (part.demand.is_asleep ? asleep : awake).push_back(part);
    if (awake.empty()) return sort_slices(parts, bound_ns);
    Plan plan = sort_slices(std::move(awake), bound_ns);
    merge(plan, asleep);
    return plan;
}

/// A VF's longest time off the engine while the table repeats.
struct Gap {
    std::uint32_t vf = 0;
    std::uint64_t first_start_us = 0, last_end_us = 0;  ///< of the VF's entries so far
    std::uint64_t longest_us = 0;
};

/// The gap of each VF, in the order of the VFs' first entries. Counts the table's own time, plus
/// `overhead_us` after each entry, also after those of the VF itself. Reserved service is not
/// included (Limits::extra_us).
std::vector<Gap> gaps_of(const Plan& plan, std::uint32_t overhead_us) {
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
        at += overhead_us;
    }
    for (Gap& gap : gaps)
        gap.longest_us = std::max(gap.longest_us, gap.first_start_us + at - gap.last_end_us);
    return gaps;
}

std::uint64_t gap_limit_of(const Demand& demand, const Limits& limits) {
    return demand.max_gap_us > 0 ? demand.max_gap_us : limits.max_gap_us;
}

/// Largest ratio of a gap to its limit; above 1, a gap is too long. HUGE_VAL if there are too many
/// entries, which may happen if a table corrects lags.
double gap_ratio_of(const Plan& plan, const std::vector<Part>& parts, const Limits& limits) {
    if (plan.entries.size() > limits.max_entries) return HUGE_VAL;
    const auto gaps = gaps_of(plan, limits.overhead_us);
    double ratio = 0;
    for (const Part& part : parts) {
        const auto gap = std::ranges::find(gaps, part.demand.vf, &Gap::vf);
        if (gap == gaps.end()) continue;
        ratio = std::max(ratio, static_cast<double>(gap->longest_us) /
                                    static_cast<double>(gap_limit_of(part.demand, limits)));
    }
    return ratio;
}

/// The real time in which `table_us` of the table's own time pass.
double real_us(std::uint64_t table_us, const Limits& limits) {
    return static_cast<double>(table_us + limits.extra_us) / (1 - limits.taken);
}

std::uint64_t real_ms(std::uint64_t table_us, const Limits& limits) {
    return ceil_div(static_cast<std::uint64_t>(real_us(table_us, limits)), kUsPerMs);
}

bool has_lag(const std::vector<Part>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [](const Part& part) { return part.demand.lag_ns != 0; });
}

/// How much of each lag one cycle corrects.
enum class Correction : std::uint8_t {
    None,        ///< the cycle ends with the lags with which it starts
    OneSlice,    ///< up to one slice of each lag
    ManySlices,  ///< a fraction of each lag, which may be more than a slice (correct_lags())
};

struct LagMode {
    Correction correction = Correction::None;
    std::uint64_t divisor = 1;  ///< ManySlices: a VF loses at most 1/divisor of its total
};

/// Makes a plan of one cycle: the length, each part's slices, and their order. If there are lags,
/// prolongs the cycle to about kManySlicesEntries or kLagEntries entries. `bound_ns`: bound of
/// SliceSorter.
Plan plan_cycle(std::vector<Part> parts, const Limits& limits, LagMode mode,
                std::optional<std::int64_t> bound_ns = {}) {
    std::uint64_t cycle_us = cycle_of(parts, limits.max_entries);
    if (has_lag(parts)) {
        const std::uint64_t desired_entries = std::min<std::uint64_t>(
            limits.max_entries / 2,
            mode.correction == Correction::ManySlices ? kManySlicesEntries : kLagEntries);
        cycle_us *= std::max<std::uint64_t>(1, desired_entries / entries_for(parts, cycle_us));
    }
    const bool is_exact = set_totals(parts, cycle_us);
    if (mode.correction == Correction::ManySlices) correct_lags(parts, mode.divisor);
    const bool corrects = mode.correction == Correction::ManySlices ||
                          (mode.correction == Correction::OneSlice && add_corrections(parts));
    Plan plan = order(parts, bound_ns);
    plan.is_exact = is_exact && !corrects;
    plan.corrects = corrects;
    for (const Gap& gap : gaps_of(plan, 0))
        plan.worst_gap_us = std::max(plan.worst_gap_us, gap.longest_us);
    return plan;
}

/// Finds the order with the smallest lags. Starts with EEVDF, whose lags are at most one slice for
/// any weights, and then tries orders with a bound, the tightest bound first. Takes such an order
/// if its lags are smaller, and if its gaps keep their limits or exceed them by no more than the
/// gaps of the order chosen before.
Plan find_best(const std::vector<Part>& parts, const Limits& limits, LagMode mode) {
    Plan chosen = plan_cycle(parts, limits, mode);
    double ratio = gap_ratio_of(chosen, parts, limits);
    const std::int64_t slice_ns = std::int64_t{chosen.quantum_us} * kNsPerUs;
    for (std::int64_t eighths = kTightestBound; eighths <= kBoundParts; ++eighths) {
        Plan plan = plan_cycle(parts, limits, mode, slice_ns * eighths / kBoundParts);
        const double other_ratio = gap_ratio_of(plan, parts, limits);
        if (other_ratio > std::max(1.0, ratio) || plan.worst_lag_ns >= chosen.worst_lag_ns)
            continue;
        chosen = std::move(plan);
        ratio = other_ratio;
    }
    return chosen;
}

std::vector<Part> without_lags(std::vector<Part> parts) {
    for (Part& part : parts) part.demand.lag_ns = 0;
    return parts;
}

std::int64_t largest_lag_ns(const std::vector<Part>& parts) {
    std::int64_t largest = 0;
    for (const Part& part : parts) largest = std::max(largest, magnitude(part.demand.lag_ns));
    return largest;
}

struct Ratio {
    std::uint64_t part = 1, whole = 1;
};

/// `parts` with each request shortened to `ratio` of its length, but at least kMinQuantumUs.
std::vector<Part> with_shorter_requests(std::vector<Part> parts, Ratio ratio) {
    for (Part& part : parts)
        part.request_us =
            std::max<std::uint64_t>(kMinQuantumUs, part.request_us * ratio.part / ratio.whole);
    return parts;
}

bool has_lag_over_slice(const std::vector<Part>& parts) {
    return std::any_of(parts.begin(), parts.end(), [](const Part& part) {
        return magnitude(part.demand.lag_ns) > std::int64_t{part.demand.quantum_us} * kNsPerUs;
    });
}

/// If the gap of a VF is too long, multiplies the VF's request by limit / gap. Shortens each such
/// request by at least 1/64, but not below kMinQuantumUs. False if no request can be shortened.
bool shrink(std::vector<Part>& parts, const Plan& plan, const Limits& limits) {
    bool has_shrunk = false;
    for (const Gap& gap : gaps_of(plan, limits.overhead_us)) {
        const auto part =
            std::ranges::find(parts, gap.vf, [](const Part& p) { return p.demand.vf; });
        const std::uint64_t limit_us = gap_limit_of(part->demand, limits);
        if (gap.longest_us <= limit_us) continue;
        const std::uint64_t shorter = std::max<std::uint64_t>(
            kMinQuantumUs, std::min(part->request_us * limit_us / gap.longest_us,
                                    part->request_us - part->request_us / 64));
        has_shrunk = has_shrunk || shorter < part->request_us;
        part->request_us = shorter;
    }
    return has_shrunk;
}

/// Finds slice lengths that keep the gap limits if all lags are 0. First shortens only the slices
/// of VFs that wait too long: such a VF then has more slices, and the other VFs keep theirs. If
/// that is not enough, halves the longest allowed slice of all VFs and tries again.
Result<std::vector<Part>> fit_gap(std::vector<Part> parts, const Limits& limits) {
    parts = without_lags(std::move(parts));
    std::uint64_t limit_us = 0;
    for (const Part& part : parts) limit_us = std::max(limit_us, part.request_us);
    double best_ratio = HUGE_VAL;
    for (; limit_us >= kMinQuantumUs; limit_us /= 2) {
        std::vector<Part> attempt = parts;
        for (Part& part : attempt) part.request_us = std::min(part.request_us, limit_us);
        for (int round = 0; round < kShrinkRounds; ++round) {
            const Plan plan = plan_cycle(attempt, limits, {Correction::None});
            const double ratio = gap_ratio_of(plan, attempt, limits);
            if (ratio <= 1) return attempt;
            best_ratio = std::min(best_ratio, ratio);
            if (!shrink(attempt, plan, limits)) break;
        }
    }
    std::uint64_t min_us = UINT64_MAX;
    for (const Part& part : parts) min_us = std::min(min_us, gap_limit_of(part.demand, limits));
    return fail(
        ErrorId::NoSchedule,
        fmt::format(
            "with these weights a VF would be off the engine for {:.1f} ms; "
            "max_gap_ms is {:.1f}",
            real_us(static_cast<std::uint64_t>(best_ratio * static_cast<double>(min_us)), limits) /
                1000.0,
            real_us(min_us, limits) / 1000.0));
}

/// Refuses a weight that is so small that the VF waits too long even if all slices are as short as
/// possible. Names a weight that fits.
Result<> admit(const std::vector<Part>& parts, const Limits& limits) {
    std::uint64_t sum = 0;
    for (const Part& part : parts) sum += part.demand.weight;
    for (const Part& part : parts) {
        const std::uint64_t weight = part.demand.weight;
        const std::uint64_t gap_us = kMinQuantumUs * (sum - weight) / weight;
        const std::uint64_t limit_us = gap_limit_of(part.demand, limits);
        if (gap_us <= limit_us) continue;
        const std::uint64_t fits = ceil_div(kMinQuantumUs * (sum - weight), limit_us);
        return fail(
            ErrorId::NoSchedule,
            fmt::format("{} with weight {} of {} would be off the engine for {} ms even "
                        "with slices of {} us; max_gap_ms is {}: weight {} or max_gap_ms {} "
                        "would fit",
                        describe_vf(part.demand.vf, part.demand.name), weight, sum,
                        real_ms(gap_us, limits), kMinQuantumUs,
                        std::llround(real_us(limit_us, limits) / kUsPerMs), fits,
                        real_ms(gap_us + gap_us / kUnevenness, limits)));
    }
    return {};
}

/// The part of plan() that can fail. For two or more demands.
Result<std::vector<Part>> fitting_parts(std::span<const Demand> demands, const Limits& limits) {
    std::vector<Part> parts = parts_of(demands);
    TRY_VOID(admit(parts, limits));
    return fit_gap(std::move(parts), limits);
}

Plan single_entry_plan(const Demand& demand) {
    return {.entries = {{demand.vf, demand.quantum_us}},
            .quantum_us = demand.quantum_us,
            .cycle_us = demand.quantum_us};
}

}  // namespace

Result<> check(std::span<const Demand> demands, Limits limits) {
    if (demands.size() < 2) return {};
    limits.overhead_us = 0;
    TRY_VOID(fitting_parts(demands, limits));
    return {};
}

namespace {

bool keeps_gap(const Plan& plan, const std::vector<Part>& parts, const Limits& limits) {
    return gap_ratio_of(plan, parts, limits) <= 1;
}

/// A plan that keeps all gap limits; none if none of the three choices does. First: the order with
/// the smallest lags, if these are at most a little larger than those of `lag_free`, the plan for
/// lags of 0. Second: an order that corrects up to one slice of each lag. Third: the first order,
/// with its larger lags.
std::optional<Plan> keep_or_correct(const std::vector<Part>& parts, const Plan& lag_free,
                                    const Limits& limits) {
    Plan fair = find_best(parts, limits, {Correction::None});
    const std::int64_t slack_ns = std::int64_t{fair.quantum_us} * kNsPerUs / kBoundParts;
    const bool fair_keeps_gap = keeps_gap(fair, parts, limits);
    if (fair_keeps_gap && fair.worst_lag_ns <= lag_free.worst_lag_ns + slack_ns) return fair;
    Plan correcting = find_best(parts, limits, {Correction::OneSlice});
    if (keeps_gap(correcting, parts, limits)) return correcting;
    if (fair_keeps_gap) return fair;
    return {};
}

/// A plan that corrects a fraction of each lag. This handles lags of more than a slice, for example
/// after the host has stalled during a slice. None if no such plan keeps all gap limits.
std::optional<Plan> correct_many(const std::vector<Part>& parts, const Limits& limits) {
    for (const std::uint64_t divisor : kCorrectionDivisors) {
        for (const std::uint64_t slices : kCorrectionSlices) {
            Plan correcting = find_best(with_shorter_requests(parts, {1, slices}), limits,
                                        {Correction::ManySlices, divisor});
            correcting.worst_lag_ns += largest_lag_ns(parts);
            if (keeps_gap(correcting, parts, limits)) return correcting;
        }
    }
    return {};
}

}  // namespace

/// If no table can keep or correct the lags within the gap limits, the plan ignores the lags, which
/// then stay. Only fitting_parts() can refuse. It plans without lags, so large lags (after the host
/// has stalled) never cause a refusal. The overhead shortens the slices where this keeps the gaps.
/// Otherwise a table may exceed a gap limit by the overhead. The PF core then keeps the gap by a
/// boost, which costs less than shorter slices for all VFs.
Result<Plan> plan(std::span<const Demand> demands, Limits limits) {
    if (demands.empty()) return Plan{};
    if (demands.size() == 1) return single_entry_plan(demands.front());
    Limits without_overhead = limits;
    without_overhead.overhead_us = 0;
    auto fitting = fitting_parts(demands, limits);
    if (!fitting && limits.overhead_us > 0) {
        limits = without_overhead;
        fitting = fitting_parts(demands, limits);
    }
    TRY(std::vector<Part> parts, std::move(fitting));
    for (std::size_t i = 0; i < demands.size(); ++i) parts[i].demand.lag_ns = demands[i].lag_ns;
    Plan lag_free = find_best(without_lags(parts), limits, {Correction::None});
    if (!has_lag_over_slice(parts)) {
        if (auto made = keep_or_correct(parts, lag_free, limits)) return *std::move(made);
        if (limits.overhead_us > 0) {
            const auto shorter = with_shorter_requests(parts, {kShorterPart, kShorterParts});
            if (auto made = keep_or_correct(shorter, lag_free, limits)) return *std::move(made);
            if (auto made = keep_or_correct(parts, lag_free, without_overhead))
                return *std::move(made);
        }
    }
    if (auto made = correct_many(parts, without_overhead)) return *std::move(made);
    lag_free.worst_lag_ns += largest_lag_ns(parts);
    return lag_free;
}

namespace {

/// Longest early run of the demand's VF: its longest slice less its debt; 0 if the debt is larger.
std::int64_t advance_us(const Plan& plan, const Demand& demand) {
    std::int64_t longest_us = 0;
    for (const Entry& entry : plan.entries)
        if (entry.vf == demand.vf)
            longest_us = std::max<std::int64_t>(longest_us, entry.quantum_us);
    return std::max<std::int64_t>(0, longest_us - demand.debt_ns / kNsPerUs);
}

/// If the other VFs use all their early runs (`others_us` in sum) at once, the lag of `demand`
/// grows by others_us · weight / Σ weights. Returns the largest fraction of `others_us`, in 1/1024,
/// that makes this lag grow by at most half of the longest slice.
std::int64_t tolerable_1024ths(const Plan& plan, const Demand& demand, std::int64_t others_us,
                               std::int64_t weights) {
    const std::int64_t behind = others_us * demand.weight;  // in units of 1 / Σ weights
    const std::int64_t bound = std::int64_t{plan.quantum_us} * weights / 2;
    return behind <= bound ? 1024 : 1024 * bound / behind;
}

}  // namespace

std::vector<Entry> reserve_of(const Plan& plan, std::span<const Demand> demands) {
    if (demands.size() < 2) return {};
    std::int64_t weights = 0, sum_us = 0;
    std::map<std::uint32_t, std::int64_t> advances_us;
    for (const Demand& demand : demands) {
        weights += demand.weight;
        if (!demand.may_wake) continue;
        sum_us += advances_us[demand.vf] = advance_us(plan, demand);
    }
    std::int64_t kept_1024ths = 1024;
    for (const Demand& demand : demands) {
        const auto own = advances_us.find(demand.vf);
        const std::int64_t others_us = sum_us - (own == advances_us.end() ? 0 : own->second);
        kept_1024ths = std::min(kept_1024ths, tolerable_1024ths(plan, demand, others_us, weights));
    }
    std::vector<Entry> reserve;
    for (const auto& [vf, us] : advances_us)
        if (us * kept_1024ths / 1024 >= kMinQuantumUs)
            reserve.push_back({vf, static_cast<std::uint32_t>(us * kept_1024ths / 1024)});
    return reserve;
}

bool is_fair_table(std::span<const Entry> entries, std::span<const Demand> demands) {
    std::map<std::uint32_t, std::uint64_t> totals;
    std::uint64_t sum_us = 0, weights = 0;
    for (const Entry& entry : entries) {
        totals[entry.vf] += entry.quantum_us;
        sum_us += entry.quantum_us;
    }
    for (const Demand& demand : demands) weights += demand.weight;
    if (totals.size() != demands.size()) return false;
    return std::all_of(demands.begin(), demands.end(), [&](const Demand& demand) {
        return totals[demand.vf] * weights == sum_us * demand.weight;
    });
}

}  // namespace vgpu::daemon::scheduler
