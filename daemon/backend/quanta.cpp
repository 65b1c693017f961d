// SPDX-License-Identifier: MIT
#include "daemon/backend/quanta.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace vgpu::daemon {

namespace {

constexpr std::uint32_t kUsPerMs = 1000;
/// Limit of the sum of exact quanta; only the shortest exact quanta (factor 1) may exceed it. Also
/// the longest cycle that rounded_quanta() tries.
constexpr std::uint32_t kLongestCycleMs = 200;
/// Without bounds on waits, exact_quanta() prefers the smallest factor with which every quantum has
/// at least this length.
constexpr std::uint32_t kComfortableQuantumMs = 16;
/// If the shortest quanta in the exact ratio of the weights have a larger sum, in ms, the quanta
/// are rounded.
constexpr std::uint64_t kMaxUnits = 1000;
/// Limit of the relative error of a VF's share after rounding.
constexpr double kTolerance = 0.05;

using Ms = std::vector<std::uint32_t>;

/// The demands, and the PF's quantum and the default time-out, which also count in the waits.
struct Problem {
    std::span<const VfShare> demands;
    std::uint32_t pf_quantum_ms;
    std::uint32_t default_timeout_us;

    [[nodiscard]] std::uint64_t timeout(const VfShare& demand) const {
        return demand.preempt_timeout_us != 0 ? demand.preempt_timeout_us : default_timeout_us;
    }
    /// The longest wait of VF `i`, in µs.
    [[nodiscard]] std::uint64_t wait(const Ms& quanta, std::size_t i) const {
        std::uint64_t wait_us = std::uint64_t{pf_quantum_ms} * kUsPerMs + default_timeout_us;
        for (std::size_t j = 0; j < demands.size(); ++j)
            if (j != i) wait_us += std::uint64_t{quanta[j]} * kUsPerMs + timeout(demands[j]);
        return wait_us + (demands.size() + 1) * std::uint64_t{kSwitchUs};
    }
    /// The first VF with a wait above its bound; none if all bounds are kept.
    [[nodiscard]] std::optional<std::size_t> find_broken_bound(const Ms& quanta) const {
        for (std::size_t i = 0; i < demands.size(); ++i)
            if (demands[i].max_wait_us != 0 && wait(quanta, i) > demands[i].max_wait_us) return i;
        return {};
    }
    [[nodiscard]] bool has_bounds() const {
        return std::any_of(demands.begin(), demands.end(),
                           [](const auto& demand) { return demand.max_wait_us != 0; });
    }
};

std::string name_of(const VfShare& vf) {
    return vf.name.empty() ? fmt::format("vf{}", vf.vf) : fmt::format("'{}'", vf.name);
}

std::uint32_t fixed_ms(const VfShare& demand) {
    return demand.quantum_us / kUsPerMs;
}

/// The sum of the weights of all VFs that have no quantum_us.
std::uint64_t sum_of_weights(std::span<const VfShare> demands) {
    return std::accumulate(demands.begin(), demands.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const VfShare& demand) {
                               return sum + (demand.quantum_us == 0 ? demand.weight : 0);
                           });
}

/// The greatest common divisor of the weights of all VFs that have no quantum_us; 1 if there are
/// none.
std::uint32_t divisor_of_weights(std::span<const VfShare> demands) {
    std::uint32_t divisor = 0;
    for (const VfShare& demand : demands)
        if (demand.quantum_us == 0) divisor = std::gcd(divisor, demand.weight);
    return std::max(divisor, 1u);
}

/// Quanta of `factor` · weight / `divisor` ms. A VF with a quantum_us keeps that quantum.
Ms quanta_by_weight(std::span<const VfShare> demands, std::uint32_t factor, std::uint32_t divisor) {
    Ms quanta;
    for (const VfShare& demand : demands)
        quanta.push_back(demand.quantum_us != 0 ? fixed_ms(demand)
                                                : factor * (demand.weight / divisor));
    return quanta;
}

std::uint64_t sum(const Ms& quanta) {
    return std::accumulate(quanta.begin(), quanta.end(), std::uint64_t{0});
}

/// Quanta in the exact ratio of the weights, as quanta_by_weight() makes them from a factor. With
/// bounds on waits, takes the largest factor that keeps the bounds. Without bounds, takes the
/// smallest factor with which each quantum is at least kComfortableQuantumMs; if there is none, the
/// largest factor. The sum of the quanta may exceed kLongestCycleMs only with the factor 1. None if
/// the factor 1 breaks a bound or exceeds kMaxUnits.
std::optional<Ms> exact_quanta(const Problem& problem) {
    const std::uint32_t divisor = divisor_of_weights(problem.demands);
    if (sum_of_weights(problem.demands) / divisor > kMaxUnits) return {};
    std::optional<Ms> best;
    for (std::uint32_t factor = 1;; ++factor) {
        const Ms quanta = quanta_by_weight(problem.demands, factor, divisor);
        const bool is_too_long = sum(quanta) > kLongestCycleMs && best;
        if (is_too_long || problem.find_broken_bound(quanta)) return best;
        best = quanta;
        const bool is_comfortable =
            *std::min_element(quanta.begin(), quanta.end()) >= kComfortableQuantumMs;
        const bool is_all_fixed = sum_of_weights(problem.demands) == 0;
        if (is_all_fixed || (!problem.has_bounds() && is_comfortable)) return best;
    }
}

/// True if, among the VFs without a quantum_us, the share of each VF is within kTolerance of its
/// share by weight.
bool keeps_shares(const Problem& problem, const Ms& quanta) {
    const auto weights = static_cast<double>(sum_of_weights(problem.demands));
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < quanta.size(); ++i)
        if (problem.demands[i].quantum_us == 0) total += quanta[i];
    for (std::size_t i = 0; i < quanta.size(); ++i) {
        const VfShare& demand = problem.demands[i];
        if (demand.quantum_us != 0) continue;
        const double ideal = demand.weight / weights;
        const double share = quanta[i] / static_cast<double>(total);
        if (std::abs(share - ideal) > kTolerance * ideal) return false;
    }
    return true;
}

/// Divides a cycle by weight among the VFs without a quantum_us, and rounds each quantum, at least
/// to 1 ms. Returns the quanta of the longest cycle that keeps the bounds on waits and the shares;
/// none if no cycle does.
std::optional<Ms> rounded_quanta(const Problem& problem) {
    const auto weights = static_cast<double>(sum_of_weights(problem.demands));
    for (std::uint32_t cycle = kLongestCycleMs; cycle > 0; --cycle) {
        Ms quanta;
        for (const VfShare& demand : problem.demands)
            quanta.push_back(demand.quantum_us != 0
                                 ? fixed_ms(demand)
                                 : static_cast<std::uint32_t>(
                                       std::max(1L, std::lround(demand.weight * cycle / weights))));
        if (!problem.find_broken_bound(quanta) && keeps_shares(problem, quanta)) return quanta;
    }
    return {};
}

/// NoSchedule, with the reason why neither exact_quanta() nor rounded_quanta() has found quanta.
tl::unexpected<Error> refuse(const Problem& problem) {
    Ms shortest;
    for (const VfShare& demand : problem.demands)
        shortest.push_back(std::max(1u, fixed_ms(demand)));
    const auto found = problem.find_broken_bound(shortest);
    if (!found)
        return fail(ErrorId::NoSchedule,
                    "quanta in whole milliseconds cannot keep both these weights within 5 % and "
                    "the bounds on waits; make the weights more alike, or allow longer waits");
    const VfShare& demand = problem.demands[*found];
    return fail(ErrorId::NoSchedule,
                fmt::format("{} may wait at most {} ms, but waits up to {} ms even if every "
                            "quantum is the shortest; use fewer VFs, shorter preempt time-outs "
                            "(they are {} ms by default), or a larger max_gap_ms or latency_ms",
                            name_of(demand), demand.max_wait_us / kUsPerMs,
                            problem.wait(shortest, *found) / kUsPerMs,
                            problem.default_timeout_us / kUsPerMs));
}

Result<> check_quantum(const VfShare& demand) {
    if (demand.quantum_us % kUsPerMs == 0) return {};
    const std::uint32_t below = demand.quantum_us / kUsPerMs * kUsPerMs;
    const std::string fits = below == 0 ? std::string() : fmt::format("{} or ", below);
    return fail(ErrorId::OutOfRange,
                fmt::format("a quantum_us of {} for {} is not a whole number of ms, which the "
                            "firmware requires; {}{} would fit",
                            demand.quantum_us, name_of(demand), fits, below + kUsPerMs));
}

/// Returns `quanta`, or NoSchedule if a VF has a smaller share than its min_pct while all functions
/// are busy.
Result<Quanta> check_shares(std::span<const VfShare> demands, Quanta quanta) {
    constexpr double kPercent = 100;
    for (std::size_t i = 0; i < demands.size(); ++i) {
        const VfQuantum& vf = quanta.vfs[i];
        if (vf.share * kPercent >= demands[i].min_pct) continue;
        return fail(ErrorId::NoSchedule,
                    fmt::format("{} has min_pct {:g}, but its share is {:.1f} % while all are "
                                "busy ({} of {} ms); give it a larger weight or quantum, or other "
                                "VFs smaller ones",
                                name_of(demands[i]), demands[i].min_pct, vf.share * kPercent,
                                vf.quantum_ms, quanta.cycle_ms));
    }
    return quanta;
}

/// Adds time-outs, waits and shares to the quanta.
Quanta with_waits_and_shares(const Problem& problem, const Ms& quanta) {
    Quanta out{.pf_quantum_ms = problem.pf_quantum_ms,
               .pf_preempt_timeout_us = problem.default_timeout_us,
               .cycle_ms = static_cast<std::uint32_t>(sum(quanta)) + problem.pf_quantum_ms};
    for (std::size_t i = 0; i < quanta.size(); ++i) {
        const std::uint64_t wait = problem.wait(quanta, i);
        const double quantum_us = quanta[i] * static_cast<double>(kUsPerMs);
        out.vfs.push_back(
            {.vf = problem.demands[i].vf,
             .quantum_ms = quanta[i],
             .preempt_timeout_us = problem.timeout(problem.demands[i]),
             .worst_wait_us = wait,
             .share = quanta[i] / static_cast<double>(out.cycle_ms),
             .guaranteed_share = quantum_us / (quantum_us + static_cast<double>(wait))});
    }
    return out;
}

}  // namespace

Result<Quanta> quanta_of(std::span<const VfShare> demands, std::uint32_t pf_quantum_ms) {
    Problem problem{demands, pf_quantum_ms, kTimeoutUs};
    if (problem.has_bounds()) problem.default_timeout_us = kBoundedTimeoutUs;
    if (demands.empty()) return with_waits_and_shares(problem, {});
    for (const VfShare& demand : demands) TRY_VOID(check_quantum(demand));
    if (const auto quanta = exact_quanta(problem))
        return check_shares(demands, with_waits_and_shares(problem, *quanta));
    if (const auto quanta = rounded_quanta(problem))
        return check_shares(demands, with_waits_and_shares(problem, *quanta));
    return refuse(problem);
}

}  // namespace vgpu::daemon
