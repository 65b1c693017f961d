// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/cycle.h"

#include <algorithm>
#include <numeric>

namespace vgpu::daemon::scheduler {

std::uint64_t weight_sum(const std::vector<Part>& parts) {
    std::uint64_t sum = 0;
    for (const Part& part : parts) sum += part.weight;
    return sum;
}

std::vector<Part> parts_of(std::span<const Demand> demands) {
    std::uint64_t divisor = 0;
    for (const Demand& demand : demands) divisor = std::gcd(divisor, std::uint64_t{demand.weight});
    std::vector<Part> parts;
    for (const Demand& demand : demands)
        parts.push_back(
            {.demand = demand, .weight = demand.weight / divisor, .request_us = demand.quantum_us});
    return parts;
}

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
    return (a + b - 1) / b;
}

namespace {

using Wide = __int128;

/// Number of successive multiples of the hyperperiod that cuttable_multiple() tries. Of
/// kMinQuantumUs successive multiples, at least one makes the total of a VF with the shortest
/// request (kMinQuantumUs) divisible by that request.
constexpr std::uint64_t kCutTries = kMinQuantumUs;

/// A VF's part of a cycle, rounded to whole us. At least the shortest slice, so that no VF is left
/// out.
std::uint64_t total_of(const Part& part, std::uint64_t cycle_us, std::uint64_t weights) {
    const std::uint64_t fair = (cycle_us * part.weight + weights / 2) / weights;
    return std::max<std::uint64_t>(fair, kMinQuantumUs);
}

/// True if `total_us` can be cut into slices of kMinQuantumUs to `request_us`.
bool is_cuttable(std::uint64_t total_us, std::uint64_t request_us) {
    return ceil_div(total_us, request_us) * kMinQuantumUs <= total_us;
}

/// Number of slices for a total: as few as possible with slices of at most `request_us`, or even
/// fewer if those slices would be shorter than kMinQuantumUs.
std::uint64_t slices_of(std::uint64_t total_us, std::uint64_t request_us) {
    const std::uint64_t max = std::max<std::uint64_t>(1, total_us / kMinQuantumUs);
    return std::min(ceil_div(total_us, request_us), max);
}

/// True if the totals of all parts can be cut.
bool are_cuttable(const std::vector<Part>& parts, std::uint64_t cycle_us) {
    const std::uint64_t weights = weight_sum(parts);
    return std::ranges::all_of(parts, [&](const Part& part) {
        return is_cuttable(total_of(part, cycle_us, weights), part.request_us);
    });
}

/// The largest n ≤ `max` for which a cycle of n · `step` us needs at most `max_entries` entries; 0
/// if there is no such n. Uses a binary search, because the number of entries grows with the cycle.
std::uint64_t fitting_multiple(const std::vector<Part>& parts, std::uint64_t step,
                               std::uint64_t max, std::uint64_t max_entries) {
    std::uint64_t low = 0;
    while (low < max) {
        const std::uint64_t middle = low + (max - low + 1) / 2;
        if (entries_for(parts, middle * step) <= max_entries)
            low = middle;
        else
            max = middle - 1;
    }
    return low;
}

/// The first of kCutTries numbers of hyperperiods, from `count` on, with which all totals can be
/// cut; `count` if there is none. Tries no number that needs more than `max_entries` entries.
std::uint64_t cuttable_multiple(const std::vector<Part>& parts, std::uint64_t hyperperiod_us,
                                std::uint64_t count, std::uint64_t max_entries) {
    for (std::uint64_t tried = count; tried < count + kCutTries; ++tried) {
        if (are_cuttable(parts, tried * hyperperiod_us)) return tried;
        if (entries_for(parts, (tried + 1) * hyperperiod_us) > max_entries) break;
    }
    return count;
}

}  // namespace

std::uint64_t entries_for(const std::vector<Part>& parts, std::uint64_t cycle_us) {
    const std::uint64_t weights = weight_sum(parts);
    std::uint64_t entries = 0;
    for (const Part& part : parts)
        entries += slices_of(total_of(part, cycle_us, weights), part.request_us);
    return entries;
}

std::uint64_t cycle_of(const std::vector<Part>& parts, std::uint64_t max_entries) {
    const std::uint64_t hyperperiod_us = weight_sum(parts);
    std::uint64_t needed = 1;
    for (const Part& part : parts)
        needed = std::max(needed, ceil_div(part.request_us, part.weight));
    const std::uint64_t count = fitting_multiple(parts, hyperperiod_us, needed, max_entries);
    if (count > 0)
        return cuttable_multiple(parts, hyperperiod_us, count, max_entries) * hyperperiod_us;
    return std::max<std::uint64_t>(1, fitting_multiple(parts, 1, hyperperiod_us, max_entries));
}

bool set_totals(std::vector<Part>& parts, std::uint64_t cycle_us) {
    const std::uint64_t weights = weight_sum(parts);
    bool is_exact = true;
    for (Part& part : parts) {
        part.total_us = total_of(part, cycle_us, weights);
        part.slices = slices_of(part.total_us, part.request_us);
        is_exact = is_exact && part.total_us * weights == cycle_us * part.weight;
    }
    return is_exact;
}

bool add_corrections(std::vector<Part>& parts) {
    const auto corrected_us = [](const Part& part) {
        const std::int64_t bound = static_cast<std::int64_t>(part.demand.quantum_us) * kNsPerUs;
        const std::int64_t owed = std::clamp(part.demand.lag_ns, -bound, bound) / kNsPerUs;
        return static_cast<std::int64_t>(part.total_us) + owed;
    };
    const bool fits = std::ranges::all_of(parts, [&](const Part& part) {
        return corrected_us(part) >= static_cast<std::int64_t>(kMinQuantumUs);
    });
    if (!fits) return false;
    for (Part& part : parts) {
        part.total_us = static_cast<std::uint64_t>(corrected_us(part));
        part.slices = slices_of(part.total_us, part.request_us);
    }
    return true;
}

void correct_lags(std::vector<Part>& parts, std::uint64_t divisor) {
    // part_of_lag / whole: the largest fraction of lags with which no VF loses too much
    std::int64_t part_of_lag = 1, whole = 1;
    for (const Part& part : parts) {
        const std::int64_t ahead_us = -part.demand.lag_ns / kNsPerUs;
        const auto max_us = static_cast<std::int64_t>(part.total_us / divisor);
        if (Wide{ahead_us} * part_of_lag <= Wide{max_us} * whole) continue;
        part_of_lag = max_us;
        whole = ahead_us;
    }
    for (Part& part : parts) {
        const auto correction_us =
            static_cast<std::int64_t>(Wide{part.demand.lag_ns / kNsPerUs} * part_of_lag / whole);
        part.total_us = static_cast<std::uint64_t>(
            std::max(static_cast<std::int64_t>(part.total_us) + correction_us,
                     static_cast<std::int64_t>(kMinQuantumUs)));
        part.slices = correction_us < 0 ? std::min(part.slices, part.total_us / kMinQuantumUs)
                                        : slices_of(part.total_us, part.request_us);
        part.weight = part.total_us;
        part.demand.lag_ns = 0;
    }
}

}  // namespace vgpu::daemon::scheduler
