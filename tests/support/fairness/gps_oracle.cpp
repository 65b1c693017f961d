// SPDX-License-Identifier: MIT
#include "tests/support/fairness/gps_oracle.h"

#include <algorithm>
#include <cmath>

namespace vgpu::test {
namespace {

constexpr std::int64_t kUnit = 1024;  // units of lag per ns

std::int64_t part_of(std::int64_t amount, std::uint64_t weight, std::uint64_t weights) {
    return static_cast<std::int64_t>(static_cast<__int128>(amount) * static_cast<__int128>(weight) /
                                     static_cast<__int128>(weights));
}

}  // namespace

GpsOracle::GpsOracle(const std::map<std::uint32_t, std::uint64_t>& weights) {
    for (const auto& [vf, weight] : weights) accounts_[vf].weight = weight;
}

std::uint64_t GpsOracle::backlogged_weights() const {
    std::uint64_t weights = 0;
    for (const auto& [id, account] : accounts_)
        weights += account.is_backlogged ? account.weight : 0;
    return weights;
}

void GpsOracle::spread(std::int64_t lag) {
    const auto weights = backlogged_weights();
    for (auto& [id, account] : accounts_)
        if (account.is_backlogged) account.lag += part_of(lag, account.weight, weights);
}

void GpsOracle::enter(Account& account) {
    if (account.is_backlogged) return;
    if (backlogged_weights() == 0) account.lag = 0;  // no VF has work that it could owe time to
    spread(-account.lag);
    account.is_backlogged = true;
}

void GpsOracle::exit(Account& account) {
    account.is_backlogged = false;
    spread(account.lag);
    account.lag = std::min<std::int64_t>(account.lag, 0);
}

void GpsOracle::serve(std::uint32_t vf, std::int64_t duration_ns) {
    const auto weights = backlogged_weights();
    for (auto& [id, account] : accounts_) {
        account.lag += part_of(duration_ns * kUnit, account.weight, weights);
        if (!account.is_backlogged) account.lag = std::min<std::int64_t>(account.lag, 0);
    }
    accounts_.at(vf).lag -= duration_ns * kUnit;
}

void GpsOracle::run(std::uint32_t vf, std::int64_t duration_ns, std::int64_t end_ns) {
    auto& served = accounts_.at(vf);
    enter(served);
    auto from = end_ns - duration_ns;
    for (const auto& [at, woken] : wakes_) {
        const auto until = std::clamp(at, from, end_ns);
        serve(vf, until - from);
        enter(accounts_.at(woken));
        from = until;
    }
    wakes_.clear();
    serve(vf, end_ns - from);
    served.received_ns += duration_ns;
    served.runs += 1;
    served.longest_run_ns = std::max(served.longest_run_ns, duration_ns);
    total_ns_ += duration_ns;
    for (auto& [id, account] : accounts_) {
        if (!account.is_backlogged) continue;
        account.lag_max_ns = std::max(account.lag_max_ns, account.lag / kUnit);
        account.lag_min_ns = std::min(account.lag_min_ns, account.lag / kUnit);
    }
    if (idle_.erase(vf) != 0) exit(served);
}

void GpsOracle::wake(std::uint32_t vf, std::int64_t at_ns) {
    idle_.erase(vf);
    if (!accounts_.at(vf).is_backlogged) wakes_.emplace(at_ns, vf);
}

void GpsOracle::idle(std::uint32_t vf) {
    idle_.insert(vf);
}

void GpsOracle::idle_preempted(std::uint32_t vf) {
    idle_.erase(vf);
    std::erase_if(wakes_, [vf](const auto& wake) { return wake.second == vf; });
    if (accounts_.at(vf).is_backlogged) exit(accounts_.at(vf));
}

void GpsOracle::judge() {
    total_ns_ = 0;
    for (auto& [id, account] : accounts_) {
        account.received_ns = account.longest_run_ns = 0;
        account.lag_max_ns = account.lag_min_ns = account.lag / kUnit;
        account.runs = 0;
    }
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
