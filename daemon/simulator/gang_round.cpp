// SPDX-License-Identifier: MIT
#include "daemon/simulator/gang_round.h"

#include <numeric>

namespace vgpu::simulator {

namespace {

constexpr std::int64_t kLongestRoundNs = std::int64_t{1} << 60;

}  // namespace

std::optional<std::int64_t> round_of_slots(const Simulation& setup) {
    std::int64_t round_ns = 0;
    for (const VfSetup& vf : setup.vfs) {
        if (!vf.policy.is_gang) continue;
        const std::int64_t period_ns = vf.policy.reservation.period_ns;
        const std::int64_t periods = round_ns == 0 ? 1 : round_ns / std::gcd(round_ns, period_ns);
        if (periods > kLongestRoundNs / period_ns) return {};
        round_ns = periods * period_ns;
    }
    return round_ns;
}

std::int64_t begin_of_round(const Simulation& setup, std::int64_t now_ns) {
    const std::int64_t round_ns = round_of_slots(setup).value_or(0);
    if (round_ns == 0) return now_ns;
    return (now_ns + round_ns - 1) / round_ns * round_ns;
}

}  // namespace vgpu::simulator
