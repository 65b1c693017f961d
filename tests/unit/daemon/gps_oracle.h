// SPDX-License-Identifier: MIT
//
// An engine that is perfectly fair, to judge schedules by. Deliberately shares nothing with the
// product's Fluid: plain long double, one array of ideal and received service, no virtual time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>

namespace vgpu::daemon::testing {

/// A seeded source of 32-bit numbers.
class Rng {
public:
    explicit Rng(std::uint32_t seed) : engine_(seed) {}
    std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

class GpsOracle {
public:
    void add(std::uint32_t vf, std::uint32_t weight) {
        vfs_[vf] = {.weight = static_cast<long double>(weight)};
    }
    void set_weight(std::uint32_t vf, std::uint32_t weight) {
        vfs_.at(vf).weight = static_cast<long double>(weight);
    }

    /// All VFs have work; `vf` alone receives `ns`. Lags are extreme at the ends of slices.
    void serve(std::uint32_t vf, std::int64_t ns) {
        long double weights = 0;
        for (const auto& [id, state] : vfs_) weights += state.weight;
        for (auto& [id, state] : vfs_) {
            state.ideal += static_cast<long double>(ns) * state.weight / weights;
            if (id == vf) state.received += static_cast<long double>(ns);
            worst_ = std::max(worst_, std::fabs(state.ideal - state.received));
        }
    }

    [[nodiscard]] long double worst_lag_ns() const { return worst_; }
    [[nodiscard]] long double lag_ns(std::uint32_t vf) const {
        return vfs_.at(vf).ideal - vfs_.at(vf).received;
    }
    [[nodiscard]] long double share_error(std::uint32_t vf) const {
        return std::fabs(vfs_.at(vf).received / vfs_.at(vf).ideal - 1);
    }
    void forget_worst() { worst_ = 0; }

private:
    struct State {
        long double weight = 0, ideal = 0, received = 0;
    };
    std::map<std::uint32_t, State> vfs_;
    long double worst_ = 0;
};

}  // namespace vgpu::daemon::testing
