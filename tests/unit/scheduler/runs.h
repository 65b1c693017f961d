// SPDX-License-Identifier: MIT
//
// Random runs of the scheduler for the property tests, and how long they are: short in the gate,
// 10^6 slices and 20 seeds with VGPU_SCHEDULER_FULL set in the environment.
#pragma once

#include "daemon/simulator/gps_fluid.h"
#include "daemon/simulator/library.h"
#include "daemon/simulator/simulator.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace vgpu::simulator {

inline bool is_full() {
    return std::getenv("VGPU_SCHEDULER_FULL") != nullptr;
}
inline std::uint64_t slices() {
    return is_full() ? 1'000'000 : 12'000;
}
inline std::uint64_t seeds() {
    return is_full() ? 20 : 3;
}

/// Rounding of oracle and scheduler together.
inline constexpr long double kRoundingNs = 2.0L;

struct Mix {
    std::uint32_t vfs = 8;
    double bursty_part = 0.5;
    bool has_changes = false;
    double overrun_part = 0;
    std::uint64_t seed = 1;
};

inline std::int64_t longest_request(const Simulation& setup) {
    std::int64_t longest = 0;
    for (const VfSetup& vf : setup.vfs) longest = std::max(longest, vf.policy.request_ns);
    return longest;
}

/// A VF that has work about half of the time, in jobs shorter and longer than a slice.
inline Workload random_bursts(Dice& dice, std::uint32_t vfs) {
    return {.arrivals = Arrivals::Bursty,
            .work_ns = dice.between(10'000, 5'000'000),
            .period_ns = dice.between(1'000'000, 10'000'000) * std::int64_t{vfs}};
}

inline void add_changes(Simulation& setup, Dice& dice) {
    const auto vfs = static_cast<std::int64_t>(setup.vfs.size());
    const std::int64_t count = static_cast<std::int64_t>(setup.max_runs) / 8;
    std::int64_t at_ns = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        at_ns += dice.exponential(12'000'000);
        const auto vf = static_cast<std::uint32_t>(dice.between(1, vfs));
        const auto kind = static_cast<ChangeKind>(dice.below(3));
        setup.changes.push_back({at_ns, kind, vf, dice.weight()});
    }
}

inline Simulation random_setup(const Mix& mix) {
    Dice dice(mix.seed * 7919 + mix.vfs);
    Simulation setup{.name = "random", .max_runs = slices(), .seed = mix.seed};
    setup.device.switch_ns = 100'000;
    setup.device.overrun_part = mix.overrun_part;
    setup.device.overrun_mean_ns = 500'000;
    setup.device.overrun_max_ns = 3'000'000;
    for (std::uint32_t vf = 1; vf <= mix.vfs; ++vf) {
        VfSetup one{.name = "vf" + std::to_string(vf)};
        one.policy.weight = dice.weight();
        one.policy.request_ns = dice.between(500'000, 2'000'000);
        if (vf > 1 && dice.chance(mix.bursty_part)) one.work = random_bursts(dice, mix.vfs);
        setup.vfs.push_back(one);
    }
    if (mix.has_changes) add_changes(setup, dice);
    return setup;
}

}  // namespace vgpu::simulator
