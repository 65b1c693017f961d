// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/fluid.h"

#include <algorithm>

namespace vgpu::daemon::scheduler {

namespace {

constexpr int kFractionBits = 32;

__int128 virtual_of(std::int64_t ns, std::int64_t weight) {
    return static_cast<__int128>(ns) * (static_cast<__int128>(1) << kFractionBits) / weight;
}

}  // namespace

void Fluid::join(std::uint32_t vf, std::uint32_t weight, std::size_t priority_class) {
    const auto [at, is_new] = clients_.try_emplace(vf);
    if (!is_new) return;
    at->second.weight = weight;
    at->second.priority_class = priority_class;
    enter(at->second, 0);
}

void Fluid::leave(std::uint32_t vf) {
    const auto at = clients_.find(vf);
    if (at == clients_.end()) return;
    if (at->second.is_awake) exit(at->second);
    clients_.erase(at);
}

void Fluid::set_weight(std::uint32_t vf, std::uint32_t weight) {
    const auto at = clients_.find(vf);
    if (at == clients_.end() || at->second.weight == weight) return;
    FluidClient& client = at->second;
    if (!client.is_awake) {
        client.debt_ns = debt_of(client);
        client.slept_at = priority_classes_[client.priority_class].now;
        client.weight = weight;
        return;
    }
    const std::int64_t lag = lag_of(client);
    exit(client);
    client.weight = weight;
    enter(client, lag);
}

void Fluid::wake(std::uint32_t vf) {
    const auto at = clients_.find(vf);
    if (at == clients_.end() || at->second.is_awake) return;
    enter(at->second, -debt_of(at->second));
}

void Fluid::sleep(std::uint32_t vf) {
    const auto at = clients_.find(vf);
    if (at == clients_.end() || !at->second.is_awake) return;
    FluidClient& client = at->second;
    client.debt_ns = std::max<std::int64_t>(0, -lag_of(client));
    exit(client);
    client.slept_at = priority_classes_[client.priority_class].now;
}

/// The VF's virtual time (`received`) advances by ns / weight, and that of its priority class by
/// ns / awake_weight.
void Fluid::serve(std::uint32_t vf, std::int64_t ns) {
    const auto at = clients_.find(vf);
    if (at == clients_.end()) return;
    wake(vf);
    FluidClass& priority_class = priority_classes_[at->second.priority_class];
    at->second.received += virtual_of(ns, at->second.weight);
    priority_class.now += virtual_of(ns, priority_class.awake_weight);
}

void Fluid::reset_lags() {
    for (auto& [vf, client] : clients_) {
        client.received = priority_classes_[client.priority_class].now;
        client.debt_ns = 0;
    }
}

bool Fluid::is_awake(std::uint32_t vf) const {
    const auto at = clients_.find(vf);
    return at != clients_.end() && at->second.is_awake;
}

std::size_t Fluid::priority_class_of(std::uint32_t vf) const {
    const auto at = clients_.find(vf);
    return at == clients_.end() ? 0 : at->second.priority_class;
}

std::int64_t Fluid::lag_ns(std::uint32_t vf) const {
    const auto at = clients_.find(vf);
    if (at == clients_.end()) return 0;
    return at->second.is_awake ? lag_of(at->second) : -debt_of(at->second);
}

double Fluid::ideal_share(std::uint32_t vf) const {
    if (!is_awake(vf)) return 0.0;
    const FluidClient& client = clients_.at(vf);
    return static_cast<double>(client.weight) /
           static_cast<double>(priority_classes_[client.priority_class].awake_weight);
}

std::int64_t Fluid::lag_of(const FluidClient& client) const {
    const __int128 scaled =
        (priority_classes_[client.priority_class].now - client.received) * client.weight;
    return static_cast<std::int64_t>(scaled / (static_cast<__int128>(1) << kFractionBits));
}

/// Each ns of service of the priority class reduces the debt by weight / awake_weight.
std::int64_t Fluid::debt_of(const FluidClient& client) const {
    const __int128 paid =
        (priority_classes_[client.priority_class].now - client.slept_at) * client.weight;
    const auto paid_ns =
        static_cast<std::int64_t>(paid / (static_cast<__int128>(1) << kFractionBits));
    return std::max<std::int64_t>(0, client.debt_ns - paid_ns);
}

/// Moves the virtual time of the class back by lag / awake_weight, which subtracts the lag from the
/// other awake VFs by weight. So the lags still sum to 0.
void Fluid::enter(FluidClient& client, std::int64_t lag) {
    FluidClass& priority_class = priority_classes_[client.priority_class];
    // The only awake VF of a class has no lag, because lags sum to 0.
    if (priority_class.awake_weight == 0) lag = 0;
    if (lag != 0) priority_class.now -= virtual_of(lag, priority_class.awake_weight);
    client.is_awake = true;
    priority_class.awake_weight += client.weight;
    client.received = priority_class.now - virtual_of(lag, client.weight);
}

/// Moves the virtual time of the class forward by lag / awake_weight, which adds the lag to the
/// other awake VFs by weight. So the lags still sum to 0.
void Fluid::exit(FluidClient& client) {
    FluidClass& priority_class = priority_classes_[client.priority_class];
    const std::int64_t lag = lag_of(client);
    client.is_awake = false;
    priority_class.awake_weight -= client.weight;
    if (priority_class.awake_weight > 0)
        priority_class.now += virtual_of(lag, priority_class.awake_weight);
}

}  // namespace vgpu::daemon::scheduler
