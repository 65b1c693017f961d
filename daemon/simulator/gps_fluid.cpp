// SPDX-License-Identifier: MIT
#include "daemon/simulator/gps_fluid.h"

#include <algorithm>
#include <cmath>

namespace vgpu::simulator {

namespace {

/// A lag between -kLagToleranceNs and 0 counts as 0.
constexpr long double kLagToleranceNs = 1e-6L;

}  // namespace

void GpsFluid::joined(std::uint32_t vf, std::uint32_t weight) {
    if (vf >= accounts_.size()) accounts_.resize(vf + 1);
    accounts_[vf].weight = static_cast<long double>(weight);
}

void GpsFluid::swapped(std::uint32_t vf, std::uint32_t other) {
    const std::size_t required = std::max(vf, other) + std::size_t{1};
    if (required > accounts_.size()) accounts_.resize(required);
    std::swap(accounts_[vf], accounts_[other]);
}

/// A competing VF stops competing, and forfeits its lag if the lag is positive.
void GpsFluid::left(std::uint32_t vf) {
    Account& account = accounts_[vf];
    if (!account.is_competing) return;
    account.is_competing = false;
    account.has_negative_lag = account.ideal < account.received;
    if (account.has_negative_lag) return distribute_if_none_competes();
    forfeited_lag_ += account.ideal - account.received;
    account.ideal = account.received;
    distribute_if_none_competes();
}

/// Distributes the forfeited lag at once if no VF competes.
void GpsFluid::distribute_if_none_competes() {
    if (std::none_of(accounts_.begin(), accounts_.end(),
                     [](const Account& account) { return account.is_competing; }))
        distribute_forfeited_lag();
}

void GpsFluid::decided(std::uint32_t /*vf*/) {
    distribute_forfeited_lag();
}

/// Distributes the forfeited lag while all competing VFs have lag < 0. If no VF takes part in the
/// split (gps_fluid.h), the lag is lost.
void GpsFluid::distribute_forfeited_lag() {
    while (forfeited_lag_ > 0) {
        long double weights = 0, step = forfeited_lag_;
        bool is_any_competing = false;
        for (const Account& account : accounts_) {
            if (!account.is_competing && !account.has_negative_lag) continue;
            is_any_competing = is_any_competing || account.is_competing;
            weights += account.weight;
        }
        for (const Account& account : accounts_) {
            if (!account.is_competing && !account.has_negative_lag) continue;
            const long double ahead = account.received - account.ideal;
            if (ahead <= kLagToleranceNs && account.is_competing) return;
            step = std::min(step, std::max(ahead, 0.0L) / account.weight * weights);
        }
        if (weights == 0) {
            forfeited_lag_ = 0;
            return;
        }
        distribute(step);
        forfeited_lag_ -= step;
        if (!is_any_competing) continue;
        record_all();
    }
}

void GpsFluid::reweighted(std::uint32_t vf, std::uint32_t weight) {
    accounts_[vf].weight = static_cast<long double>(weight);
}

void GpsFluid::competes(std::uint32_t vf) {
    accounts_[vf].is_competing = true;
    accounts_[vf].has_negative_lag = false;
}

void GpsFluid::stops_competing(std::uint32_t vf, bool is_mid_slice) {
    Account& account = accounts_[vf];
    if (!account.is_competing) return;
    account.is_competing = false;
    const long double lag = account.ideal - account.received;
    if (lag < 0) {
        account.has_negative_lag = true;
    } else {
        account.ideal = account.received;
        if (is_mid_slice)
            distribute(lag);
        else
            forfeited_lag_ += lag;
        record_all();
    }
    distribute_if_none_competes();
}

void GpsFluid::served(std::uint32_t vf, std::int64_t ns, bool is_reserved, std::int64_t /*at_ns*/) {
    if (is_reserved) return;
    accounts_[vf].received += static_cast<long double>(ns);
    distribute(static_cast<long double>(ns));
    // each lag only grows or only shrinks during the service, so |lag| is largest at start or end
    record_all();
}

/// Adds `ns`, split by weight, to the ideal service of the VFs that take part in the split. A VF
/// that takes part only because of its negative lag leaves the split when its lag reaches 0.
void GpsFluid::distribute(long double ns) {
    while (ns > 0) {
        long double weights = 0, step = ns;
        for (const Account& account : accounts_)
            if (account.is_competing || account.has_negative_lag) weights += account.weight;
        if (weights == 0) return;
        for (const Account& account : accounts_) {
            if (!account.has_negative_lag) continue;
            const long double debt = account.received - account.ideal;
            step = std::min(step, std::max(debt, 0.0L) / account.weight * weights);
        }
        for (Account& account : accounts_) {
            if (!account.is_competing && !account.has_negative_lag) continue;
            account.ideal += step * account.weight / weights;
            if (!account.has_negative_lag || account.received - account.ideal > kLagToleranceNs)
                continue;
            account.ideal = account.received;
            account.has_negative_lag = false;
        }
        ns -= step;
    }
}

/// Updates worst_lag_.
void GpsFluid::record_all() {
    for (const Account& account : accounts_) {
        if (!account.is_competing && !account.has_negative_lag) continue;
        worst_lag_ = std::max(worst_lag_, std::fabs(account.ideal - account.received));
    }
}

long double GpsFluid::lag_ns(std::uint32_t vf) const {
    return accounts_[vf].ideal - accounts_[vf].received;
}

}  // namespace vgpu::simulator
