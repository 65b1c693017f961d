// SPDX-License-Identifier: MIT
#include "tests/support/fairness/gps_oracle.h"

#include <algorithm>
#include <cmath>

namespace vgpu::test {
namespace {

constexpr std::int64_t kUnit = 1024;  // of lag, per ns

}  // namespace

GpsOracle::GpsOracle(const std::map<std::uint32_t, std::uint64_t>& weights) {
    for (const auto& [vf, weight] : weights) accounts_[vf].weight = weight;
}

void GpsOracle::run(std::uint32_t vf, std::int64_t duration_ns) {
    auto& served = accounts_.at(vf);
    served.is_backlogged = true;
    std::uint64_t weights = 0;
    for (const auto& [id, account] : accounts_)
        weights += account.is_backlogged ? account.weight : 0;
    for (auto& [id, account] : accounts_) {
        if (!account.is_backlogged) continue;
        const auto due = static_cast<__int128>(duration_ns) * kUnit *
                         static_cast<__int128>(account.weight) / static_cast<__int128>(weights);
        account.lag += static_cast<std::int64_t>(due);
    }
    served.lag -= duration_ns * kUnit;
    served.received_ns += duration_ns;
    served.runs += 1;
    served.longest_run_ns = std::max(served.longest_run_ns, duration_ns);
    total_ns_ += duration_ns;
    for (auto& [id, account] : accounts_) {
        account.lag_max_ns = std::max(account.lag_max_ns, account.lag / kUnit);
        account.lag_min_ns = std::min(account.lag_min_ns, account.lag / kUnit);
    }
}

void GpsOracle::set_backlogged(std::uint32_t vf, bool has_work) {
    auto& account = accounts_.at(vf);
    account.is_backlogged = has_work;
    if (!has_work) account.lag = std::min<std::int64_t>(account.lag, 0);
}

double GpsOracle::share(std::uint32_t vf) const {
    return total_ns_ == 0
               ? 0
               : static_cast<double>(accounts_.at(vf).received_ns) / static_cast<double>(total_ns_);
}

double GpsOracle::share_error(std::uint32_t vf) const {
    std::uint64_t weights = 0;
    for (const auto& [id, account] : accounts_) weights += account.weight;
    const double ideal =
        static_cast<double>(accounts_.at(vf).weight) / static_cast<double>(weights);
    return std::abs(share(vf) / ideal - 1);
}

std::int64_t GpsOracle::worst_lag_ns() const {
    std::int64_t worst = 0;
    for (const auto& [id, account] : accounts_)
        worst = std::max({worst, account.lag_max_ns, -account.lag_min_ns});
    return worst;
}

}  // namespace vgpu::test
